#include "base/buffer.h"
#include "base/sort.h"
#include "base/text.h"
#include "formats/torch/tensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Marks of nodes; the first is TORCH_HOLDS_TENSORS. */
    VISITED = 2,
    ON_PATH = 4,
    PAIRS_UNIQUE = 8,

    MAX_DEPTH = 256, /* of containers that hold tensors */
    MAX_DEPTH_IN_ALL = 1000000,
    /* each node takes at least one byte of pickle; shared nodes are visited again */
    VISITS_PER_BYTE = 2,
    VISITS_CONSTANT = 1 << 16, /* for small pickles */
    NAME_BYTES_PER_BYTE = 8,   /* names repeat the names of their containers */
    NAME_BYTES_CONSTANT = 4 << 20,
    EXPANSION_RATIO = 8,
};

static const uint64_t expansion_constant = UINT64_C(64) << 20;

/* The children of a node, in up to four groups. */
enum part { ARGUMENTS, PAIRS, ITEMS, STATE, N_PARTS };

struct frame {
    struct pickle_node *node;
    uint32_t index;     /* of the next child in the part */
    uint8_t part;       /* enum part */
    bool is_state;      /* the node is the state of an object: its keys are attributes */
    bool holds, named;  /* holds tensors; has a path other than the root's */
    bool is_arguments;  /* the node is an argument of builtins.tuple() */
    bool is_array;      /* the node is the state of an array of objects, or in it */
    size_t path_length; /* of the node's own path */
};

struct walk {
    const struct torch_container *container;
    struct arena *scratch;
    struct error *error;
    struct frame *frames;
    size_t n_frames, frames_capacity;
    struct buffer path;
    uint64_t visits, name_bytes, copied_bytes; /* still allowed */
    struct checkpoint *checkpoint;
    size_t first_tensor;
    struct torch_stored *stored; /* of each tensor from first_tensor on */
    size_t n_stored;
};

/* Equal keys: the last value wins, at the place of the first. */

struct keyed {
    const struct pickle_node *key;
    uint32_t index;
};

static bool is_plain_key(const struct pickle_node *key)
{
    return pickle_is(key, PICKLE_TEXT) || pickle_is(key, PICKLE_INTEGER);
}

static int compare_keys(const struct pickle_node *a, const struct pickle_node *b)
{
    if (a->kind != b->kind || !is_plain_key(a))
        return a->kind < b->kind ? -1 : a->kind > b->kind;
    if (a->kind == PICKLE_INTEGER)
        return (a->integer > b->integer) - (a->integer < b->integer);
    return text_compare(a->text.bytes, a->text.length, b->text.bytes, b->text.length);
}

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    int order = compare_keys(x->key, y->key);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static void make_unique(struct pickle_items *pairs)
{
    uint32_t n = pairs->n / 2, kept = 0;
    struct keyed *keys = memory_alloc(n * sizeof *keys);
    for (uint32_t i = 0; i < n; i++)
        keys[i] = (struct keyed){pairs->nodes[2 * i], i};
    qsort(keys, n, sizeof *keys, compare_keyed);
    for (uint32_t i = 0, first = 0; i < n; i++) {
        if (i == 0 || !is_plain_key(keys[i].key) || compare_keys(keys[i - 1].key, keys[i].key) != 0) {
            first = i;
            continue;
        }
        pairs->nodes[2 * keys[first].index + 1] = pairs->nodes[2 * keys[i].index + 1];
        pairs->nodes[2 * keys[i].index] = NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        if (pairs->nodes[2 * i] != NULL) {
            pairs->nodes[2 * kept] = pairs->nodes[2 * i];
            pairs->nodes[2 * kept++ + 1] = pairs->nodes[2 * i + 1];
        }
    pairs->n = 2 * kept;
    free(keys);
}

/* Takes the pairs of OrderedDict([(key, value), ...]), as Python 2 writes it, and OrderedDict({...}), as if they had
 * been set. */
static bool take_pairs_of_arguments(struct walk *walk, struct pickle_object *object)
{
    const struct pickle_node *from = pickle_at(object->arguments, 0);
    if (object->pairs.n > 0)
        return true;
    uint32_t n = pickle_is(from, PICKLE_DICT) ? from->items.n / 2 : pickle_count(from);
    uint64_t n_bytes = 2 * (uint64_t)n * sizeof *object->pairs.nodes;
    if (n_bytes > walk->copied_bytes)
        return torch_refuse(walk->container, from, walk->error, "items are copied to too many dicts");
    walk->copied_bytes -= n_bytes;
    if (pickle_is(from, PICKLE_DICT)) {
        object->pairs.n = object->pairs.capacity = from->items.n;
        object->pairs.nodes = arena_copy(walk->scratch, from->items.nodes, from->items.n * sizeof *from->items.nodes);
        return true;
    }
    object->pairs.nodes = arena_array(walk->scratch, 2 * (size_t)n, sizeof *object->pairs.nodes);
    for (uint32_t i = 0; i < n; i++) {
        const struct pickle_node *pair = pickle_at(from, i);
        if (pickle_count(pair) != 2)
            continue;
        object->pairs.nodes[object->pairs.n++] = pair->items.nodes[0];
        object->pairs.nodes[object->pairs.n++] = pair->items.nodes[1];
    }
    return true;
}

static struct pickle_items *pairs_of(struct pickle_node *node)
{
    if (pickle_is(node, PICKLE_DICT))
        return &node->items;
    return pickle_is(node, PICKLE_OBJECT) ? &node->object->pairs : NULL;
}

static bool prepare(struct walk *walk, struct pickle_node *node)
{
    struct pickle_items *pairs = pairs_of(node);
    if (pairs == NULL || (node->mark & PAIRS_UNIQUE))
        return true;
    node->mark |= PAIRS_UNIQUE;
    if (node->kind == PICKLE_OBJECT && node->meaning == GLOBAL_DICT && !take_pairs_of_arguments(walk, node->object))
        return false;
    make_unique(pairs);
    return true;
}

/* Returns the child at `index` of a part; *ret_key is its key in a dict. NULL after the last. */
static struct pickle_node *child_at(struct pickle_node *node, enum part part, uint32_t index,
                                    struct pickle_node **ret_key)
{
    *ret_key = NULL;
    struct pickle_object *object = node->kind == PICKLE_OBJECT ? node->object : NULL;
    const struct pickle_items *items = NULL;
    switch (part) {
    case PAIRS: {
        const struct pickle_items *pairs = pairs_of(node);
        if (pairs == NULL || 2 * (uint64_t)index >= pairs->n)
            return NULL;
        *ret_key = pairs->nodes[2 * index];
        return pairs->nodes[2 * index + 1];
    }
    case ARGUMENTS:
        if (object != NULL && object->class->meaning != GLOBAL_DICT && pickle_is(object->arguments, PICKLE_TUPLE))
            items = &object->arguments->items;
        break;
    case ITEMS:
        if (object != NULL)
            items = &object->items;
        else if (node->kind == PICKLE_LIST || node->kind == PICKLE_TUPLE || node->kind == PICKLE_SET)
            items = &node->items;
        break;
    case STATE:
        if (object != NULL && object->class->meaning != GLOBAL_DICT && index == 0)
            return object->state;
        break;
    default:
        break;
    }
    return items != NULL && index < items->n ? items->nodes[index] : NULL;
}

/* Returns the node that the walk enters at `node`: itself, the holder of a tensor subclass's values, or NULL. */
static struct pickle_node *container_at(struct pickle_node *node)
{
    if (torch_is_tensor(node))
        return torch_inner_tensors(node);
    bool container = node->kind == PICKLE_DICT || node->kind == PICKLE_LIST || node->kind == PICKLE_TUPLE ||
                     node->kind == PICKLE_SET || node->kind == PICKLE_OBJECT;
    return container ? node : NULL;
}

static bool push_frame(struct walk *walk, struct pickle_node *node, const struct frame *like, size_t limit)
{
    if (walk->n_frames == limit)
        return torch_refuse(walk->container, node, walk->error, "nested more than %zu deep", limit);
    if (walk->n_frames == walk->frames_capacity) {
        walk->frames_capacity = walk->frames_capacity * 2 + 64;
        walk->frames = memory_resize(walk->frames, walk->frames_capacity * sizeof *walk->frames);
    }
    if (!prepare(walk, node))
        return false;
    node->mark |= ON_PATH;
    walk->frames[walk->n_frames++] = (struct frame){
        .node = node,
        .is_state = like->is_state,
        .is_arguments = like->is_arguments,
        .is_array = like->is_array,
        .named = like->named,
        .path_length = walk->path.length,
    };
    return true;
}

/* Returns the next child of the frame, with its key and index; NULL after the last. */
static struct pickle_node *next_child(struct frame *frame, struct pickle_node **ret_key, uint32_t *ret_index)
{
    for (; frame->part < N_PARTS; frame->part++, frame->index = 0) {
        struct pickle_node *child = child_at(frame->node, (enum part)frame->part, frame->index, ret_key);
        if (child == NULL)
            continue;
        *ret_index = frame->index++;
        return child;
    }
    return NULL;
}

/* First pass: visits each node once, and marks nodes that hold tensors. In a cycle, a node may stay unmarked although
 * it leads to a tensor; the tensor is then named by the way found first. */
static bool mark_holders(struct walk *walk, struct pickle_node *root)
{
    const struct frame none = {0};
    if (!push_frame(walk, root, &none, MAX_DEPTH_IN_ALL))
        return false;
    while (walk->n_frames > 0) {
        struct frame *frame = &walk->frames[walk->n_frames - 1];
        struct pickle_node *key, *child;
        uint32_t index;
        if ((child = next_child(frame, &key, &index)) == NULL) {
            frame->node->mark =
                (uint8_t)((frame->node->mark & ~ON_PATH) | VISITED | (frame->holds ? TORCH_HOLDS_TENSORS : 0));
            walk->n_frames--;
            if (walk->n_frames > 0)
                frame[-1].holds |= frame->holds;
            continue;
        }
        if (torch_is_tensor(child)) {
            child->mark |= TORCH_HOLDS_TENSORS;
            frame->holds = true;
        }
        child = container_at(child);
        if (child == NULL || (child->mark & ON_PATH))
            continue;
        if (child->mark & VISITED)
            frame->holds |= child->mark & TORCH_HOLDS_TENSORS;
        else if (!push_frame(walk, child, &none, MAX_DEPTH_IN_ALL))
            return false;
    }
    return true;
}

/* Paths. */

static bool is_module_part(const struct frame *frame, const struct pickle_node *key)
{
    return frame->is_state &&
           (pickle_text_is(key, "_parameters") || pickle_text_is(key, "_buffers") || pickle_text_is(key, "_modules"));
}

/* Reports whether the node is a state (dict, slots). */
static bool is_state_pair(const struct frame *frame)
{
    return frame->is_state && pickle_count(frame->node) == 2 && frame->node->kind == PICKLE_TUPLE;
}

/* Reports whether the node is what Paddle pickles for a tensor: tuple((name of the variable, array)). */
static bool is_variable(const struct frame *frame)
{
    const struct pickle_node *node = frame->node;
    return frame->is_arguments && pickle_count(node) == 2 && pickle_is(pickle_at(node, 0), PICKLE_TEXT) &&
           torch_is_tensor(pickle_at(node, 1));
}

/* Reports whether the node is the state of an array, whose last item lists its elements. */
static bool is_array_state(const struct frame *frame)
{
    return frame->is_array && frame->node->kind == PICKLE_TUPLE;
}

/* Reports whether the node lists the only element of an array without dimensions. */
static bool is_only_element(const struct frame *frame)
{
    return frame->is_array && frame->node->kind == PICKLE_LIST && pickle_count(frame[-1].node) > 3 &&
           pickle_count(pickle_at(frame[-1].node, pickle_count(frame[-1].node) - 4)) == 0;
}

/* Reports whether the child has its parent's path. */
static bool is_transparent(const struct frame *frame, const struct pickle_node *key)
{
    if (is_array_state(frame) || is_only_element(frame))
        return true;
    if (frame->part == STATE || is_state_pair(frame) || is_variable(frame))
        return true;
    if (frame->part == ARGUMENTS)
        return frame->node->meaning != GLOBAL_FOREIGN && frame->node->meaning != GLOBAL_CLASS;
    return frame->part == PAIRS && is_module_part(frame, key);
}

/* Sets the path to the child's; *ret_like holds the fields that its frame inherits. */
static bool enter_path(struct walk *walk, const struct frame *frame, const struct pickle_node *key, uint32_t index,
                       struct frame *ret_like)
{
    walk->path.length = frame->path_length;
    *ret_like = (struct frame){
        .named = frame->named,
        .is_state = frame->part == STATE || is_state_pair(frame),
        .is_arguments = frame->part == ARGUMENTS && frame->node->meaning == GLOBAL_TUPLE,
        .is_array = frame->part == STATE ? torch_array_of_objects(frame->node, NULL, NULL) : is_array_state(frame),
    };
    if (is_transparent(frame, key))
        return true;
    if (frame->named)
        buffer_append_text(&walk->path, ".");
    if (frame->part == PAIRS)
        torch_append_key(&walk->path, key);
    else
        buffer_printf(&walk->path, "%" PRIu32, index);
    ret_like->named = true;
    return walk->path.length <= TENSOR_MAX_NAME ||
           torch_refuse(walk->container, frame->node, walk->error, "a name longer than %d bytes", TENSOR_MAX_NAME);
}

/* Tensors. */

static bool add_tensor(struct walk *walk, const struct pickle_node *node)
{
    struct tensor tensor;
    struct torch_stored stored;
    if (!torch_make_tensor(walk->container, node, &tensor, &stored, walk->error))
        return false;
    if (walk->container->tensors->n_tensors >= TENSOR_SET_MAX)
        return torch_refuse(walk->container, node, walk->error, "more than %d tensors", TENSOR_SET_MAX);
    if (walk->path.length > walk->name_bytes)
        return torch_refuse(walk->container, node, walk->error,
                            "the names of its tensors (%zu so far) exceed 4 MiB plus %d bytes per byte of the pickle",
                            walk->container->tensors->n_tensors, NAME_BYTES_PER_BYTE);
    walk->name_bytes -= walk->path.length;
    tensor.name = arena_strndup(walk->checkpoint->arena, (const char *)walk->path.bytes, walk->path.length);
    tensor.name_length = (uint32_t)walk->path.length;
    tensor_set_add(walk->container->tensors, &tensor);
    walk->stored = memory_grow(walk->stored, walk->n_stored, sizeof *walk->stored);
    walk->stored[walk->n_stored++] = stored;
    return true;
}

/* Second pass: names all tensors. */
static bool name_tensors(struct walk *walk, struct pickle_node *root)
{
    const struct frame start = {.named = walk->container->prefix != NULL};
    walk->path.length = 0;
    if (walk->container->prefix != NULL)
        buffer_append_text(&walk->path, walk->container->prefix);
    if (!push_frame(walk, root, &start, MAX_DEPTH))
        return false;
    while (walk->n_frames > 0) {
        struct frame *frame = &walk->frames[walk->n_frames - 1], like;
        struct pickle_node *key, *child, *into;
        uint32_t index;
        if ((child = next_child(frame, &key, &index)) == NULL) {
            frame->node->mark &= (uint8_t)~ON_PATH;
            walk->n_frames--;
            continue;
        }
        if (walk->visits-- == 0)
            return torch_refuse(walk->container, child, walk->error, "nodes are shared in too many ways");
        if (!(child->mark & TORCH_HOLDS_TENSORS))
            continue;
        if (!enter_path(walk, frame, key, index, &like) || (torch_is_tensor(child) && !add_tensor(walk, child)))
            return false;
        into = container_at(child);
        if (into != NULL && !(into->mark & ON_PATH) && !push_frame(walk, into, &like, MAX_DEPTH))
            return false;
    }
    return true;
}

/* Returns the dict to open in place of `node`: the one under "state_dict" or "model", which becomes *ret_key, if
 * nothing else holds tensors. */
static struct pickle_node *open_wrapper(struct pickle_node *node, const char **ret_key)
{
    static const char *const keys[] = {"state_dict", "model"};
    struct pickle_items *pairs =
        pickle_is(node, PICKLE_DICT) || pickle_object_is(node, GLOBAL_DICT) ? pairs_of(node) : NULL;
    struct pickle_node *only = NULL, *key = NULL;
    for (uint32_t i = 0; pairs != NULL && i < pairs->n; i += 2) {
        if (!(pairs->nodes[i + 1]->mark & TORCH_HOLDS_TENSORS))
            continue;
        if (only != NULL)
            return NULL;
        key = pairs->nodes[i];
        only = pairs->nodes[i + 1];
    }
    if (only == NULL || only == node || torch_is_tensor(only))
        return NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (pickle_text_is(key, keys[i])) {
            *ret_key = keys[i];
            return only;
        }
    return NULL;
}

/* Final names, once all are known. */

static struct tensor *tensors_of(const struct walk *walk, size_t *ret_count)
{
    *ret_count = walk->container->tensors->n_tensors - walk->first_tensor;
    return *ret_count != 0 ? tensor_set_edit(walk->container->tensors) + walk->first_tensor : NULL;
}

static void strip_module(const struct walk *walk)
{
    static const char prefix[] = "module.";
    enum { LENGTH = sizeof prefix - 1 };
    size_t n;
    struct tensor *tensors = tensors_of(walk, &n);
    for (size_t i = 0; i < n; i++)
        if (tensors[i].name_length <= LENGTH || memcmp(tensors[i].name, prefix, LENGTH) != 0)
            return;
    for (size_t i = 0; i < n; i++) {
        tensors[i].name += LENGTH;
        tensors[i].name_length -= LENGTH;
    }
}

struct wanted_name {
    const struct tensor *tensors;
    const uint32_t *sorted;
    const char *name;
    size_t length;
};

static int compare_to_wanted(const struct wanted_name *wanted, size_t index)
{
    const struct tensor *tensor = &wanted->tensors[wanted->sorted[index]];
    return text_compare(tensor->name, tensor->name_length, wanted->name, wanted->length);
}

static bool name_comes_before(const void *context, size_t index)
{
    return compare_to_wanted(context, index) < 0;
}

static bool is_name(const struct tensor *tensors, const uint32_t *sorted, size_t n, const char *name, size_t length)
{
    const struct wanted_name wanted = {tensors, sorted, name, length};
    size_t found = search_first(n, name_comes_before, &wanted);
    return found < n && compare_to_wanted(&wanted, found) == 0;
}

/* Makes equal names distinct. A name made here ends in '~' and a number that no other name has. */
static void tell_apart(const struct walk *walk)
{
    size_t n;
    struct tensor *tensors = tensors_of(walk, &n);
    uint32_t *sorted = tensors_by_name(tensors, n);
    const char **names = memory_alloc(n * sizeof *names);
    for (size_t i = 0; i < n; i++)
        names[i] = NULL;
    for (size_t i = 1, number = 1; i < n; i++) {
        const struct tensor *tensor = &tensors[sorted[i]], *before = &tensors[sorted[i - 1]];
        if (text_compare(tensor->name, tensor->name_length, before->name, before->name_length) != 0) {
            number = 1;
            continue;
        }
        struct buffer name = {0};
        do {
            name.length = 0;
            buffer_append(&name, tensor->name, tensor->name_length);
            buffer_printf(&name, "~%zu", ++number);
        } while (is_name(tensors, sorted, n, (const char *)name.bytes, name.length));
        names[sorted[i]] = arena_strndup(walk->checkpoint->arena, (const char *)name.bytes, name.length);
        buffer_free(&name);
    }
    for (size_t i = 0; i < n; i++)
        if (names[i] != NULL) {
            size_t tail = strlen(strrchr(names[i] + tensors[i].name_length, '~'));
            tensors[i].name = names[i];
            tensors[i].name_length += (uint32_t)tail;
        }
    free(names);
    free(sorted);
}

/* A tensor, and the stored bytes it is made from. */
struct expansion {
    struct tensor *tensor;
    struct torch_stored stored;
};

static int compare_shown(const void *a, const void *b)
{
    const struct expansion *x = a, *y = b;
    if (x->stored.source != y->stored.source)
        return x->stored.source < y->stored.source ? -1 : 1;
    if (x->stored.offset != y->stored.offset)
        return x->stored.offset < y->stored.offset ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static uint64_t shown_bytes(const struct tensor *tensor)
{
    return tensor->refusal != NULL ? 0 : dtype_bytes(tensor->dtype, tensor_elements(tensor));
}

static void refuse_expanded(struct expansion *shown, size_t n)
{
    uint64_t left = 0;
    qsort(shown, n, sizeof *shown, compare_shown);
    for (size_t i = 0; i < n; i++) {
        const struct torch_stored *stored = &shown[i].stored, *before = i > 0 ? &shown[i - 1].stored : NULL;
        uint64_t n_bytes = shown_bytes(shown[i].tensor);
        if (before == NULL || before->source != stored->source || before->offset != stored->offset)
            left = stored->n_bytes < UINT64_MAX / EXPANSION_RATIO ? stored->n_bytes * EXPANSION_RATIO : UINT64_MAX;
        if (n_bytes > left)
            shown[i].tensor->refusal = "expands to more than 8 times the stored size";
        else
            left -= n_bytes;
    }
}

void torch_limit_expansion(const struct checkpoint *checkpoint, const struct source *file, struct tensor *tensors,
                           const struct torch_stored *stored, size_t n)
{
    size_t n_sources = checkpoint->n_sources > 0 ? checkpoint->n_sources : 1;
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(total, shown_bytes(&tensors[i]), &total))
            total = UINT64_MAX;
    if (total / EXPANSION_RATIO <= source_size(file) + expansion_constant / EXPANSION_RATIO / n_sources)
        return;
    struct expansion *shown = memory_alloc(n * sizeof *shown);
    for (size_t i = 0; i < n; i++)
        shown[i] = (struct expansion){&tensors[i], stored[i]};
    refuse_expanded(shown, n);
    free(shown);
}

/* Appends the file's name without its directories and its ending. */
static void append_stem(struct buffer *path, const char *name)
{
    const char *start = text_last_name(name), *dot = strrchr(start, '.');
    buffer_append(path, start, dot != NULL && dot != start ? (size_t)(dot - start) : strlen(start));
}

static bool add_named(struct walk *walk, struct pickle_node *root, struct pickle *pickle)
{
    if (torch_is_tensor(root)) {
        append_stem(&walk->path, source_name(walk->container->file));
        return add_tensor(walk, root);
    }
    root = container_at(root);
    if (root == NULL)
        return true;
    walk->copied_bytes = pickle->n_needed * (uint64_t)PICKLE_MEMORY_RATIO + PICKLE_MEMORY_CONSTANT;
    if (!mark_holders(walk, root))
        return false;
    for (struct pickle_node *inner; (inner = open_wrapper(root, &walk->checkpoint->wrapper)) != NULL;)
        root = inner;
    if (!(root->mark & TORCH_HOLDS_TENSORS))
        return true;
    walk->visits = pickle->n_needed * (uint64_t)VISITS_PER_BYTE + VISITS_CONSTANT;
    walk->name_bytes = pickle->n_needed * (uint64_t)NAME_BYTES_PER_BYTE + NAME_BYTES_CONSTANT;
    return name_tensors(walk, root);
}

static void add_extras(const struct torch_container *container, struct pickle_node *root)
{
    struct checkpoint *checkpoint = container->checkpoint;
    bool cut;
    const char *extras = checkpoint->extras == NULL ? torch_extras(checkpoint->arena, root, &cut) : NULL;
    if (extras == NULL)
        return;
    checkpoint->extras = extras;
    if (cut)
        checkpoint_note(checkpoint, SUBJECT_SOURCE, "%s: only the first %d KiB of non-tensor data are shown",
                        container->place, TORCH_MAX_EXTRAS / 1024);
}

static void note_foreign(const struct torch_container *container, const struct pickle *pickle)
{
    for (unsigned i = 0; i < pickle->n_foreign; i++) {
        const struct pickle_node *class = pickle->foreign[i].global;
        char place[256], module[128], name[128];
        text_printable(container->place, strlen(container->place), place, sizeof place);
        text_printable(class->global.module, strlen(class->global.module), module, sizeof module);
        text_printable(class->global.name, strlen(class->global.name), name, sizeof name);
        if (pickle->foreign[i].called)
            checkpoint_note(container->checkpoint, SUBJECT_SOURCE,
                            "%s: offset %" PRIu64 ": %s.%s is not called, so its result is unknown", place,
                            (uint64_t) class->offset, module, name);
        else
            checkpoint_note(container->checkpoint, SUBJECT_SOURCE,
                            "%s: offset %" PRIu64 ": objects of %s.%s are read as plain data; torch.load would run it",
                            place, (uint64_t) class->offset, module, name);
    }
}

bool torch_add_tensors(const struct torch_container *container, struct pickle *pickle, struct arena *scratch,
                       struct error *error)
{
    struct torch_nested nested = {NULL, 0};
    struct torch_container own = *container;
    own.nested = &nested;
    struct walk walk = {
        .container = &own,
        .scratch = scratch,
        .error = error,
        .checkpoint = container->checkpoint,
        .first_tensor = container->tensors->n_tensors,
        .name_bytes = TENSOR_MAX_NAME,
    };
    bool good = torch_check_whole(container, pickle->root, error) && add_named(&walk, pickle->root, pickle);
    if (good && container->tensors->n_tensors > walk.first_tensor) {
        strip_module(&walk);
        tell_apart(&walk);
        size_t n;
        struct tensor *tensors = tensors_of(&walk, &n);
        torch_limit_expansion(container->checkpoint, container->file, tensors, walk.stored, n);
        good = torch_join_slices(container, pickle, walk.first_tensor, error);
    }
    if (good) {
        add_extras(container, pickle->root);
        note_foreign(container, pickle);
    }
    free(nested.storages);
    free(walk.frames);
    free(walk.stored);
    buffer_free(&walk.path);
    return good;
}
