/* A reader of the few sections of an ELF file that cubin.h names. */
#include "eval/candidate/cubin.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    MACHINE_CUDA = 190,
    MAX_KERNELS = 4096,
    MAX_NAME = 4096,
    ABI_NEW_FLAGS = 8, /* since this ABI version e_flags has the architecture in bits 8 to 15 */
    FORMAT_SIZED = 4,  /* an attribute with a 16-bit length and that many bytes */
    ATTR_FRAME_SIZE = 0x11,
    ATTR_MIN_STACK = 0x12,
    ATTR_REGCOUNT = 0x2f,
    RESERVED_SHARED = 1024,
    INSTRUCTION_BYTES = 16,
    LOAD_LOCAL = 0x983,
    STORE_LOCAL = 0x387,
    WIDE_LOCAL = 5, /* of two words; 6: of four */
    LOAD_GLOBAL = 0x981,
    SCOREBOARDS = 6
};

/* Operations of a line program; the last two behind a zero. */
enum {
    DW_COPY = 1,
    DW_ADVANCE,
    DW_LINE,
    DW_FILE,
    DW_COLUMN,
    DW_CONST = 8,
    DW_FIXED,
    DW_END = 1,
    DW_ADDRESS
};

typedef struct {
    const unsigned char *data;
    size_t len;
    Elf64_Ehdr head;
    const unsigned char *sections; /* may be unaligned: headers are copied out */
    Elf64_Shdr names;
    Error *err;
} Elf;

static int in_file(const Elf *e, uint64_t offset, uint64_t size)
{
    return offset <= e->len && size <= e->len - offset;
}

static Elf64_Shdr section(const Elf *e, unsigned i)
{
    Elf64_Shdr s;
    memcpy(&s, e->sections + (size_t)i * sizeof s, sizeof s);
    return s;
}

/* A NUL-terminated name inside a string section, or NULL. */
static const char *string_at(const Elf *e, const Elf64_Shdr *strings, uint64_t offset)
{
    if (strings->sh_type != SHT_STRTAB || !in_file(e, strings->sh_offset, strings->sh_size) ||
        offset >= strings->sh_size)
        return NULL;
    const char *s = (const char *)e->data + strings->sh_offset + offset;
    uint64_t room = strings->sh_size - offset;
    return memchr(s, 0, room < MAX_NAME ? room : MAX_NAME) ? s : NULL;
}

static const char *section_name(const Elf *e, unsigned i)
{
    Elf64_Shdr s = section(e, i);
    const char *name = string_at(e, &e->names, s.sh_name);
    return name ? name : "";
}

static int open_elf(Elf *e, const void *data, size_t len, Error *err)
{
    *e = (Elf){.data = data, .len = len, .err = err};
    if (len < sizeof e->head)
        return error_set(err, ERROR_CORRUPT,
                         "cubin: an ELF header of %zu bytes expected, found %zu bytes",
                         sizeof e->head, len);
    memcpy(&e->head, data, sizeof e->head);
    const unsigned char *id = e->head.e_ident;
    if (memcmp(id, ELFMAG, SELFMAG) || id[EI_CLASS] != ELFCLASS64 || id[EI_DATA] != ELFDATA2LSB)
        return error_set(err, ERROR_CORRUPT, "cubin: a 64-bit little-endian ELF file expected");
    if (e->head.e_machine != MACHINE_CUDA)
        return error_set(err, ERROR_CORRUPT, "cubin: machine %d (CUDA) expected, found %u",
                         MACHINE_CUDA, e->head.e_machine);
    if (e->head.e_shentsize != sizeof(Elf64_Shdr) ||
        !in_file(e, e->head.e_shoff, (uint64_t)e->head.e_shnum * sizeof(Elf64_Shdr)))
        return error_set(err, ERROR_CORRUPT,
                         "cubin: %u section headers of %u bytes at %llu do not fit in %zu bytes",
                         e->head.e_shnum, e->head.e_shentsize, (unsigned long long)e->head.e_shoff,
                         len);
    if (e->head.e_shstrndx >= e->head.e_shnum)
        return error_set(err, ERROR_CORRUPT, "cubin: the section of names (%u) does not exist",
                         e->head.e_shstrndx);
    e->sections = e->data + e->head.e_shoff;
    e->names = section(e, e->head.e_shstrndx);
    return 0;
}

static unsigned operation_of(const unsigned char *inst)
{
    return (unsigned)(inst[0] | inst[1] << 8) & 0xfff;
}

static void note_local(CubinKernel *k, uint32_t i, const unsigned char *inst)
{
    const unsigned operation = operation_of(inst), width = inst[9] >> 1 & 7;
    if (operation != LOAD_LOCAL && operation != STORE_LOCAL) return;
    k->locals = memory_grow(k->locals, (size_t)k->n_locals + 1, sizeof *k->locals);
    k->locals[k->n_locals++] = (CubinLocal){.inst = i,
                                            .is_store = operation == STORE_LOCAL,
                                            .words = width < WIDE_LOCAL    ? 1
                                                     : width == WIDE_LOCAL ? 2
                                                                           : 4};
}

/* A walk over machine code: the waits so far of its piece, and of each scoreboard the waits by which the
 * last load that sets it has arrived. */
typedef struct {
    uint32_t piece, turn, arrived[SCOREBOARDS];
} LoadWalk;

static int ends_piece(unsigned operation)
{
    return operation == 0x947 || operation == 0x94d || operation == 0x950 || operation == 0x944;
}

static void note_load(LoadWalk *w, CubinKernel *k, uint32_t i, const unsigned char *inst)
{
    const unsigned sets = (unsigned)(inst[13] | inst[14] << 8) >> 6 & 7,
                   awaited = (unsigned)(inst[14] | inst[15] << 8) >> 4 & 0x3f;
    for (int b = 0; b < SCOREBOARDS; b++)
        if (awaited >> b & 1 && w->arrived[b] > w->turn) w->turn = w->arrived[b];
    if (operation_of(inst) == LOAD_GLOBAL) {
        k->loads = memory_grow(k->loads, (size_t)k->n_loads + 1, sizeof *k->loads);
        k->loads[k->n_loads++] = (CubinLoad){i, w->piece, w->turn};
        if (sets < SCOREBOARDS) w->arrived[sets] = w->turn + 1;
    }
    if (ends_piece(operation_of(inst))) *w = (LoadWalk){.piece = w->piece + 1};
}

/* Finds the loads and stores of local memory and the loads of global memory in machine code. */
static void find_accesses(const Elf *e, const Elf64_Shdr *text, CubinKernel *k)
{
    if (!in_file(e, text->sh_offset, text->sh_size)) return;
    const uint32_t n = (uint32_t)(text->sh_size / INSTRUCTION_BYTES);
    LoadWalk walk = {0};
    for (uint32_t i = 0; i < n; i++) {
        const unsigned char *p = e->data + text->sh_offset + (uint64_t)i * INSTRUCTION_BYTES;
        note_local(k, i, p);
        note_load(&walk, k, i, p);
    }
    if (!k->n_locals && !k->n_loads) return;
    k->n_insts = n;
    k->lines = memory_array(n, sizeof *k->lines);
}

/* Every section .text.K is a kernel or a device function. */
static int collect_kernels(const Elf *e, Cubin *out)
{
    for (unsigned i = 0; i < e->head.e_shnum; i++) {
        const char *name = section_name(e, i);
        if (strncmp(name, ".text.", 6) || cubin_find(out, name + 6)) continue;
        if (out->n == MAX_KERNELS)
            return error_set(e->err, ERROR_LIMIT, "cubin: more than %d kernels", MAX_KERNELS);
        out->kernels = memory_grow(out->kernels, (size_t)out->n + 1, sizeof *out->kernels);
        Elf64_Shdr text = section(e, i);
        CubinKernel *k = &out->kernels[out->n++];
        *k = (CubinKernel){.name = memory_strdup(name + 6), .registers = (int)(text.sh_info >> 24)};
        find_accesses(e, &text, k);
    }
    return 0;
}

static void read_shared(const Elf *e, Cubin *out)
{
    uint64_t reserved = 0;
    for (unsigned i = 0; i < e->head.e_shnum; i++)
        if (!strcmp(section_name(e, i), ".nv.shared.reserved.0")) reserved = RESERVED_SHARED;
    for (unsigned i = 0; i < e->head.e_shnum; i++) {
        const char *name = section_name(e, i);
        CubinKernel *k =
            strncmp(name, ".nv.shared.", 11) ? NULL : (CubinKernel *)cubin_find(out, name + 11);
        uint64_t size = section(e, i).sh_size;
        if (k)
            k->static_shared = (uint32_t)(size > UINT32_MAX ? UINT32_MAX
                                          : size > reserved ? size - reserved
                                                            : 0);
    }
}

/* Sum .nv.global and .nv.global.init; the sum saturates, since a size may be false. User constants
 * count as state, too. */
static void read_variables(const Elf *e, Cubin *out)
{
    for (unsigned i = 0; i < e->head.e_shnum; i++) {
        const char *name = section_name(e, i);
        uint64_t size = section(e, i).sh_size;
        int global = !strncmp(name, ".nv.global", 10);
        if (global && __builtin_add_overflow(out->variable_bytes, size, &out->variable_bytes))
            out->variable_bytes = UINT64_MAX;
        if (global || !strncmp(name, ".nv.constant3", 13) || !strncmp(name, ".nv.managed", 11))
            out->has_state = 1;
    }
}

/* The name of symbol `index` of the table that .nv.info refers to, or NULL. */
static const char *symbol_name(const Elf *e, const Elf64_Shdr *table, uint32_t index)
{
    Elf64_Sym symbol;
    if (table->sh_type != SHT_SYMTAB || !in_file(e, table->sh_offset, table->sh_size) ||
        index >= table->sh_size / sizeof symbol || table->sh_link >= e->head.e_shnum)
        return NULL;
    memcpy(&symbol, e->data + table->sh_offset + (size_t)index * sizeof symbol, sizeof symbol);
    Elf64_Shdr strings = section(e, table->sh_link);
    return string_at(e, &strings, symbol.st_name);
}

static void apply(Cubin *out, const char *kernel, int attribute, uint32_t value)
{
    CubinKernel *k = kernel ? (CubinKernel *)cubin_find(out, kernel) : NULL;
    if (!k) return;
    if (attribute == ATTR_REGCOUNT && value <= 255) k->registers = (int)value;
    if ((attribute == ATTR_FRAME_SIZE || attribute == ATTR_MIN_STACK) && value > k->local_bytes)
        k->local_bytes = value;
}

/* .nv.info is a list of attributes: format byte, attribute byte, then 16 bits of value or of
 * length. */
static int read_info(const Elf *e, const Elf64_Shdr *info, Cubin *out)
{
    if (info->sh_type == SHT_NOBITS || !in_file(e, info->sh_offset, info->sh_size))
        return error_set(e->err, ERROR_CORRUPT, "cubin: .nv.info lies outside the file");
    Elf64_Shdr table = {0};
    if (info->sh_link < e->head.e_shnum) table = section(e, info->sh_link);
    const unsigned char *p = e->data + info->sh_offset, *end = p + info->sh_size;
    while (end - p >= 4) {
        int format = p[0], attribute = p[1];
        size_t size = (size_t)p[2] | (size_t)p[3] << 8;
        p += 4;
        if (format != FORMAT_SIZED) continue;
        if (size > (size_t)(end - p))
            return error_set(e->err, ERROR_CORRUPT,
                             "cubin: attribute 0x%x of .nv.info is cut short", (unsigned)attribute);
        if (size >= 8) {
            uint32_t pair[2];
            memcpy(pair, p, sizeof pair);
            apply(out, symbol_name(e, &table, pair[0]), attribute, pair[1]);
        }
        p += size;
    }
    return 0;
}

/* ---- lines of the PTX ---- */

typedef struct {
    const unsigned char *p, *end;
} Bytes;

static uint64_t take(Bytes *b, size_t bytes)
{
    uint64_t v = 0;
    if ((size_t)(b->end - b->p) < bytes) b->p = b->end;
    for (size_t i = 0; i < bytes && b->p < b->end; i++) v |= (uint64_t)*b->p++ << 8 * i;
    return v;
}

/* A number in groups of seven bits; with a sign, its last group has it. */
static int64_t take_groups(Bytes *b, int is_signed)
{
    uint64_t v = 0;
    int shift = 0, more = 1;
    while (more && b->p < b->end && shift < 63) {
        const unsigned char group = *b->p++;
        v |= (uint64_t)(group & 0x7f) << shift;
        shift += 7;
        more = group & 0x80;
        if (!more && is_signed && group & 0x40) v |= UINT64_MAX << shift;
    }
    return (int64_t)v;
}

/* The state of a line program: the row under way, and the kernel whose code it is. */
typedef struct {
    uint64_t address, step, line, row; /* row: the line from the last row on */
    CubinKernel *of;                   /* NULL: none */
    uint32_t next;                     /* of its instructions */
    int least, range, first;
} Lines;

enum { MOST_LINE = INT32_MAX };

static void give_lines(Lines *l)
{
    for (; l->of && l->next < l->of->n_insts && l->next < l->address / INSTRUCTION_BYTES; l->next++)
        l->of->lines[l->next] = l->row <= MOST_LINE ? (uint32_t)l->row : 0;
    l->row = l->line;
}

/* The kernel to whose code the address at `offset` of section `lines` is relocated; NULL: none. */
static CubinKernel *relocated(const Elf *e, Cubin *out, unsigned lines, uint64_t offset)
{
    for (unsigned i = 0; i < e->head.e_shnum; i++) {
        const Elf64_Shdr s = section(e, i);
        Elf64_Rela r;
        if (s.sh_type != SHT_RELA || s.sh_info != lines || !in_file(e, s.sh_offset, s.sh_size) ||
            s.sh_link >= e->head.e_shnum)
            continue;
        const Elf64_Shdr table = section(e, s.sh_link);
        for (uint64_t at = 0; at + sizeof r <= s.sh_size; at += sizeof r) {
            Elf64_Sym symbol;
            memcpy(&r, e->data + s.sh_offset + at, sizeof r);
            if (r.r_offset != offset || !in_file(e, table.sh_offset, table.sh_size) ||
                ELF64_R_SYM(r.r_info) >= table.sh_size / sizeof symbol)
                continue;
            memcpy(&symbol, e->data + table.sh_offset + ELF64_R_SYM(r.r_info) * sizeof symbol,
                   sizeof symbol);
            const char *name = section_name(e, symbol.st_shndx);
            if (symbol.st_shndx < e->head.e_shnum && !strncmp(name, ".text.", 6))
                return (CubinKernel *)cubin_find(out, name + 6);
        }
    }
    return NULL;
}

/* An operation of several bytes: the end of a sequence, or an address. */
static void extended(const Elf *e, Cubin *out, Lines *l, Bytes *b, unsigned lines)
{
    const uint64_t len = (uint64_t)take_groups(b, 0);
    Bytes in = {b->p, (uint64_t)(b->end - b->p) < len ? b->end : b->p + len};
    const unsigned operation = (unsigned)take(&in, 1);
    b->p = in.end;
    if (operation != DW_END && operation != DW_ADDRESS) return;
    if (operation == DW_END) give_lines(l);
    const uint64_t offset = (uint64_t)(in.p - e->data) - section(e, lines).sh_offset;
    *l = (Lines){
        .step = l->step, .line = 1, .least = l->least, .range = l->range, .first = l->first};
    if (operation == DW_ADDRESS) l->of = relocated(e, out, lines, offset);
}

/* A program behind its header. */
static void run_lines(const Elf *e, Cubin *out, Lines *l, Bytes b, unsigned lines)
{
    while (b.p < b.end) {
        const int operation = (int)take(&b, 1), special = operation - l->first;
        if (special >= 0) {
            l->address += (uint64_t)(special / l->range) * l->step;
            l->line += (uint64_t)(int64_t)(l->least + special % l->range);
            give_lines(l);
        } else if (!operation) {
            extended(e, out, l, &b, lines);
        } else if (operation == DW_COPY) {
            give_lines(l);
        } else if (operation == DW_ADVANCE) {
            l->address += (uint64_t)take_groups(&b, 0) * l->step;
        } else if (operation == DW_LINE) {
            l->line += (uint64_t)take_groups(&b, 1);
        } else if (operation == DW_FILE || operation == DW_COLUMN) {
            take_groups(&b, 0);
        } else if (operation == DW_CONST) {
            l->address += (uint64_t)((255 - l->first) / l->range) * l->step;
        } else if (operation == DW_FIXED) {
            l->address += take(&b, 2);
        }
    }
}

/* Gives the instructions of kernels with such accesses their lines, as far as the section is valid. */
static void read_lines(const Elf *e, Cubin *out)
{
    for (unsigned i = 0; i < e->head.e_shnum; i++) {
        const Elf64_Shdr s = section(e, i);
        if (strcmp(section_name(e, i), ".nv_debug_line_sass") ||
            !in_file(e, s.sh_offset, s.sh_size))
            continue;
        Bytes b = {e->data + s.sh_offset, e->data + s.sh_offset + s.sh_size};
        while (b.p < b.end) {
            const uint64_t len = take(&b, 4);
            Bytes unit = {b.p, (uint64_t)(b.end - b.p) < len ? b.end : b.p + len};
            b.p = unit.end;
            const uint64_t version = take(&unit, 2), head = take(&unit, 4);
            if (version != 2 || head > (uint64_t)(unit.end - unit.p)) continue;
            Bytes program = {unit.p + head, unit.end};
            Lines l = {.line = 1, .step = take(&unit, 1)};
            take(&unit, 1);
            l.least = (int8_t)take(&unit, 1);
            l.range = (int)take(&unit, 1);
            l.first = (int)take(&unit, 1);
            if (l.range && l.first) run_lines(e, out, &l, program, i);
        }
    }
}

static int read_sections(const Elf *e, Cubin *out)
{
    if (collect_kernels(e, out)) return -1;
    read_shared(e, out);
    read_variables(e, out);
    read_lines(e, out);
    for (unsigned i = 0; i < e->head.e_shnum; i++) {
        Elf64_Shdr info = section(e, i);
        if (!strcmp(section_name(e, i), ".nv.info") && read_info(e, &info, out)) return -1;
    }
    return 0;
}

int cubin_parse(const void *data, size_t len, Cubin *out, Error *err)
{
    Elf e;
    *out = (Cubin){0};
    if (open_elf(&e, data, len, err)) return -1;
    uint32_t flags = e.head.e_flags;
    out->sm =
        (int)(e.head.e_ident[EI_ABIVERSION] >= ABI_NEW_FLAGS ? flags >> 8 & 0xff : flags & 0xff);
    if (!read_sections(&e, out)) return 0;
    cubin_release(out);
    return -1;
}

void cubin_release(Cubin *c)
{
    for (int i = 0; i < c->n; i++) {
        free(c->kernels[i].name);
        free(c->kernels[i].locals);
        free(c->kernels[i].loads);
        free(c->kernels[i].lines);
    }
    free(c->kernels);
    *c = (Cubin){0};
}

const CubinKernel *cubin_find(const Cubin *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (!strcmp(c->kernels[i].name, name)) return &c->kernels[i];
    return NULL;
}
