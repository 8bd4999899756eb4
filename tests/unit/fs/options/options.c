#include "fs/options/options.h"

#include "tests/unit/check.h"

#include <string.h>

static struct options options;

static const char *parse(const char *words)
{
    static struct error error;
    options_free(&options);
    options_init(&options);
    return options_parse(&options, words, &error) ? "" : error.message;
}

static void each_fills_its_field(void)
{
    CHECK_TEXT(parse("name=a\\,b,format=torch,allow-trailing,q4_0=absmax7"), "");
    CHECK_TEXT(options.open.name, "a,b");
    CHECK_TEXT(options.open.format, "torch");
    CHECK(options.open.allow_trailing);
    CHECK(options.content.request.quantize.q4_0_rule == &q4_0_absmax7_rule);
    CHECK_TEXT(parse("pure,leave-output-tensor,keep-split,requantize,token-embedding-type=q8_0,"
                     "output-tensor-type=q6_K,tensor-type=a=f16,tensor-type=b=f32"),
               "");
    const struct quantize_options *quantize = &options.content.request.quantize;
    CHECK(quantize->pure && quantize->leave_output_tensor && quantize->keep_split && quantize->requantize);
    CHECK_TEXT(quantize->token_embedding_type->name, "Q8_0");
    CHECK_TEXT(quantize->output_tensor_type->name, "Q6_K");
    CHECK_TEXT(quantize->tensor_types[0], "a=f16");
    CHECK_TEXT(quantize->tensor_types[1], "b=f32");
    CHECK(quantize->tensor_types[2] == NULL);
    CHECK_TEXT(parse("include-weights=a,include-weights=b,override-kv=k=int:1,split=2G,dtype=BF16,shard-size=2GiB"),
               "");
    CHECK_TEXT(quantize->filter.include[1], "b");
    CHECK(quantize->filter.exclude == NULL);
    CHECK_TEXT(options.content.request.edits.override_kvs[0], "k=int:1");
    CHECK(options.content.request.split.max_bytes == 2000000000 && options.content.request.split.max_tensors == 0);
    CHECK(options.content.request.hf_type == &bf16_dtype);
    CHECK(options.content.request.shard_size == (uint64_t)2 << 30);
    CHECK_TEXT(parse("uid=7,gid=4294967294,umask=027,nonempty,no-readahead"), "");
    CHECK(options.mount.uid == 7 && options.mount.gid == 4294967294 && options.mount.umask == 027);
    CHECK(options.mount.nonempty && options.mount.session.no_readahead && !options.mount.session.allow_other);
}

static void a_refusal_names_the_option_once(void)
{
    static const struct {
        const char *words, *message;
    } bad[] = {
        {"q4_0=best", "option q4_0: 'best' is neither ggml nor absmax7"},
        {"tensor-type=x", "option tensor-type: 'x' is not PATTERN=TYPE"},
        {"override-kv=a", "option override-kv: 'a' is not KEY=TYPE:VALUE with a TYPE of int, float, bool or str"},
        {"split=x", "option split: 'x' is neither a size such as 500M or 2G nor a number of tensors"},
        {"dtype=q4_0", "option dtype: 'q4_0' is not f32, f16 or bf16"},
        {"exclude-weights=a,include-weights=b", "option include-weights: cannot be combined with exclude-weights"},
        {"include-weights=a,exclude-weights=b", "option exclude-weights: cannot be combined with include-weights"},
        {"uid=4294967295", "option uid: '4294967295' is not a number from 0 to 4294967294"},
        {"gid=-1", "option gid: '-1' is not a number from 0 to 4294967294"},
        {"umask=1000", "option umask: '1000' is not an octal number from 0 to 777"},
        {"pure=1", "option pure takes no value"},
        {"name", "option name needs a value: NAME"},
        {"layout=no-such", "option layout: there is no layout 'no-such'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_TEXT(parse(bad[i].words), bad[i].message);
}

int main(void)
{
    each_fills_its_field();
    a_refusal_names_the_option_once();
    options_free(&options);
    return check_done();
}
