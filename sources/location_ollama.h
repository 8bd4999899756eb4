/* Ollama's store of models: manifests/HOST/NAMESPACE/NAME/TAG and blobs/sha256-HEX.
 *
 * A location shows one model: its blobs under names that say what they hold. The location's text is
 * ollama://NAME[:TAG], ollama://NAMESPACE/NAME or ollama://HOST/NAMESPACE/NAME, in the store that OLLAMA_MODELS names,
 * or ollama:///STORE/manifests/HOST/NAMESPACE/NAME/TAG, the absolute path of a manifest in any store. The default tag
 * is latest.
 *
 * The model is model.gguf, beside it mmproj.gguf, adapter.gguf and draft.gguf; template, system, params, messages and
 * LICENSE are texts. Of several blobs of one kind, all but the first have a number in their name. Models of the newer
 * form have a blob for each tensor: a shard each, and side files under their own names.
 *
 * Source: server/images.go, manifest/ and types/model/name.go of Ollama. */
#pragma once

#include "base/arena.h"

#include <stdbool.h>

/* Returns the path of the user's store: OLLAMA_MODELS, else ~/.ollama/models, or the system service's if that is the
 * only one. */
const char *ollama_store(struct arena *arena);

/* Returns the path of the store that the text of a location is read from; NULL if it is another kind of location. */
const char *ollama_store_of(const char *text, struct arena *arena);
