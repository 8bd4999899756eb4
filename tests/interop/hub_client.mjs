// Reads from `wfs serve` with @huggingface/hub, whose folder is the argument, and prints what it found as JSON.
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(pathToFileURL(`${process.argv[2]}/`));
const { downloadFile, fileDownloadInfo, listFiles, modelInfo } = require("@huggingface/hub");
const hub = { hubUrl: process.env.HF_ENDPOINT, accessToken: process.env.HF_TOKEN };
const repo = "acme/Tiny-GGUF", path = "Tiny-Q4_K_M.gguf";

const sizes = {};
for await (const entry of listFiles({ repo, recursive: true, ...hub })) {
    sizes[entry.path] = entry.size;
}
const { size } = await fileDownloadInfo({ repo, path, ...hub });
const file = await downloadFile({ repo, path, ...hub });
const whole = Buffer.from(await file.arrayBuffer());
const part = Buffer.from(await file.slice(1000, 6000).arrayBuffer());
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const { name } = await modelInfo({ name: repo, ...hub });
console.log(JSON.stringify({ name, sizes, size, whole: sha256(whole), part: sha256(part) }));
