/* test_tables.c -- tables with a row of names: separators, quotes, numbers, categories, classes, splits that do not move, the saved
 * form of columns, and the faults that a file can have, each with its place. */
#include "data/columns.h"
#include "data/csv.h"
#include "data/data.h"
#include "data/split.h"
#include "death.h"
#include "suite.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A program opens its data once and keeps them; these tests open many tables in one process.  A memory stream holds the text of the
 * columns. */
#define LEAKS_KEPT "leak:data_open\nleak:columns_read\nleak:table_add\nleak:_IO_mem_finish\n"
#include "leaks.h"

static char directory[] = "/tmp/tenon-test-XXXXXX";
static char file[128];
static RtProgram program;
static const char *split = "train";

/* A program with one input of `numbers` numbers, and the class `kind` of two; all rows are for training. */
static void begin(int64_t numbers)
{
    static const char *const target[] = {"kind"};
    strcpy(directory, "/tmp/tenon-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(file, sizeof file, "%s/train.csv", directory);
    program = (RtProgram){.model = "test", .batch = 1, .real_bytes = 4, .input_rank = 1, .input_dim = {numbers},
                          .classes = 2, .labels = 1, .outputs = 2, .softmax_output = true,
                          .recipe = {.test = 1e-300, .seed = 1, .table = {.given = true, .target = {1, target}, .standardize = true}}};
}

static void end(void)
{
    unlink(file);
    char path[64];
    snprintf(path, sizeof path, "%s/test.csv", directory);
    unlink(path);
    rmdir(directory);
}

static void write_file(const char *name, const char *text)
{
    snprintf(file, sizeof file, "%s/%s", directory, name);
    FILE *f = fopen(file, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

static Data *open_split(const char *text)
{
    write_file("train.csv", text);
    return data_open(&program, directory, split, 0);
}

static float number(const Data *d, int64_t sample, int64_t k)
{
    return ((const float *)(const void *)(d->x + sample * d->stride))[k];
}

static void is_near(float a, double b)
{
    ck_assert_msg(fabs((double)a - b) < 1e-6, "%g, not %g", (double)a, b);
}

START_TEST(columns_become_numbers_categories_and_classes)
{
    /* The mean of age is 3, its deviation sqrt(2); towns are sorted by their bytes. */
    static const char *const form[] = {
        "age,town,kind\n1,Ulm,b\n3,Bonn,a\n5,\"Bad, Ems\",a\n",
        "\xEF\xBB\xBF" "age;town;kind\r\n1;Ulm;b\r\n3;Bonn;a\r\n\r\n5;Bad, Ems;a",
        "\"age\"\t\"town\"\t\"kind\"\n\"1\"\tUlm\tb\n 3 \tBonn\ta\n5.0e0\tBad, Ems\ta\n\n",
        "kind,town,other,age\nb,Ulm,x,1\na,Bonn,y,3\na,\"Bad, Ems\",z,5\n",
    };
    static const char *const input[] = {"age", "town"};
    for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
        begin(4);
        program.recipe.table.input = i == 3 ? (RtNames){2, input} : (RtNames){0};
        const Columns none = {0};
        columns_take(&none);
        const Data *d = open_split(form[i]);
        ck_assert_int_eq(d->n, 3);
        for (int row = 0; row < 3; row++) {
            static const int town[] = {2, 1, 0};
            is_near(number(d, row, 0), (row - 1) * 2 / sqrt(8. / 3));
            for (int k = 0; k < 3; k++)
                is_near(number(d, row, 1 + k), k == town[row]);
            ck_assert_int_eq(d->label[row], row == 0);
        }
        end();
    }
}
END_TEST

START_TEST(quotes_hold_quotes_and_lines)
{
    static const char *const input[] = {"a \"name\"\nof two lines"};
    begin(1);
    program.recipe.table.input = (RtNames){1, input};
    program.recipe.table.standardize = false;
    const Data *d = open_split("\"a \"\"name\"\"\nof two lines\",kind\n2,\"x\ny\"\n4,\"say \"\"so\"\"\"\n");
    ck_assert_int_eq(d->n, 2);
    is_near(number(d, 1, 0), 4);
    const Column *kind = &columns_now()->at[1];
    ck_assert_int_eq(columns_find(kind, "say \"so\""), 0);
    ck_assert_int_eq(columns_find(kind, "x\ny"), 1);
    end();
}
END_TEST

START_TEST(names_hold_lines_before_the_separator)
{
    begin(2);
    program.recipe.table.standardize = false;
    const Data *d = open_split("\"a, of\ntwo lines\";b;kind\n2;3;x\n4;5;y\n");
    is_near(number(d, 1, 0), 4);
    is_near(number(d, 1, 1), 5);
    end();
}
END_TEST

START_TEST(long_texts_are_cut_between_characters)
{
    char text[200] = "x";
    for (int i = 0; i < 40; i++)
        strcat(text, "\xC3\xA4");
    const char *shown = csv_shown(text);
    ck_assert_uint_eq(strlen(shown), 59 + 3);
    ck_assert_msg(strncmp(shown, text, 59) == 0 && strcmp(shown + 59, "...") == 0, "%s", shown);
    ck_assert_str_eq(csv_shown("a\tb"), "a?b");
}
END_TEST

START_TEST(numbers_with_commas_can_be_categories)
{
    static const char *const category[] = {"a"};
    begin(2);
    program.recipe.table.category = (RtNames){1, category};
    const Data *d = open_split("a;kind\n1,5;x\n2,5;y\n");
    is_near(number(d, 0, 0), 1);
    is_near(number(d, 1, 1), 1);
    end();
    const Columns none = {0};
    columns_take(&none);
    begin(2);
    d = open_split("a;kind\n1,5;x\n2,5 to 3;y\n"); /* a comma beside other characters */
    is_near(number(d, 0, 0), 1);
    end();
}
END_TEST

START_TEST(gaps_and_unknown_categories)
{
    begin(3);
    program.recipe.table.mean = program.recipe.table.other = true;
    open_split("age,town,kind\n1,Ulm,a\nNA,Ulm,b\n3,Bonn,a\n2,,a\n");
    split = "test";
    write_file("test.csv", "kind,age,town\na,?,Rom\nb,3,\n");
    program.recipe.test = 0;
    const Data *d = data_open(&program, directory, "test", 0);
    is_near(number(d, 0, 0), 0); /* the mean */
    is_near(number(d, 0, 1) + number(d, 0, 2), 0);
    is_near(number(d, 1, 1), 1. / 3); /* the shares of Bonn and Ulm */
    is_near(number(d, 1, 2), 2. / 3);
    snprintf(file, sizeof file, "%s/train.csv", directory);
    end();
}
END_TEST

START_TEST(equal_numbers_become_zeros)
{
    begin(1);
    const Data *d = open_split("a,kind\n0.1,x\n0.1,y\n0.1,x\n0.1,y\n0.1,x\n0.1,y\n0.1,x\n0.1,y\n0.1,x\n0.1,y\n");
    for (int i = 0; i < 10; i++)
        is_near(number(d, i, 0), 0);
    split = "test";
    write_file("test.csv", "a,kind\n0.3,x\n");
    program.recipe.test = 0;
    is_near(number(data_open(&program, directory, "test", 0), 0, 0), 0.2); /* the difference from their mean */
    snprintf(file, sizeof file, "%s/train.csv", directory);
    end();
}
END_TEST

START_TEST(tokens_number_the_categories_of_all_columns)
{
    static const char *const category[] = {"zip"};
    begin(2);
    program.vocab = 5;
    program.recipe.table.category = (RtNames){1, category};
    program.recipe.table.other = true;
    const Data *d = open_split("town,zip,kind\nUlm,10,a\nBonn,9,b\nUlm,100,a\n");
    static const int32_t want[] = {1, 3, 0, 2, 1, 4}; /* 9 < 10 < 100 */
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(((const int32_t *)(const void *)d->x)[i], want[i]);
    end();
}
END_TEST

START_TEST(columns_are_saved_and_read)
{
    Column column[3] = {{.name = "a\\n\nb", .mean = 0.1, .deviation = 1e-300}, {.name = "t", .category = true}, {.name = "y"}};
    for (int i = 0; i < 2; i++) {
        const int32_t k = table_add(&column[1].value, i ? "x\n\\y" : "", i ? 4 : 0);
        column[1].value.count[k] = 7 + i;
    }
    const Columns c = {.at = column, .ninput = 2, .n = 3};
    columns_take(&c);
    char *text = strdup(columns_now()->text);
    const int64_t bytes = columns_now()->text_bytes;
    ck_assert(columns_read(text, bytes));
    const Columns *r = columns_now();
    ck_assert_int_eq(r->n, 3);
    ck_assert_str_eq(r->at[0].name, "a\\n\nb");
    ck_assert(r->at[0].mean == 0.1 && r->at[0].deviation == 1e-300);
    ck_assert_int_eq(columns_find(&r->at[1], "x\n\\y"), 1);
    ck_assert_int_eq(r->at[1].value.count[1], 8);
    ck_assert_str_eq(r->text, text);
    for (int64_t n = 0; n < bytes; n++) /* each shorter text is damaged */
        ck_assert(!columns_read(text, n));
    free(text);
}
END_TEST

START_TEST(no_sample_moves_when_samples_are_added)
{
    const Split test = split_of(1, "test", 0.2, 0.1), validation = split_of(1, "validation", 0.2, 0.1),
                train = split_of(1, "train", 0.2, 0.1), fewer = split_of(1, "train", 0.2, 0);
    int n[3] = {0};
    for (uint64_t i = 0; i < 10000; i++) {
        const int one = split_takes(&test, i), two = split_takes(&validation, i), three = split_takes(&train, i);
        ck_assert_int_eq(one + two + three, 1);
        ck_assert(!three || split_takes(&fewer, i)); /* a validation split takes samples from the training split only */
        n[0] += one, n[1] += two, n[2] += three;
    }
    ck_assert_msg(abs(n[0] - 2000) < 160 && abs(n[1] - 1000) < 120, "%d and %d of 10000", n[0], n[1]);
}
END_TEST

/* Rows of this split of the directory. */
static int64_t rows(const char *name)
{
    const Columns none = {0};
    columns_take(&none);
    const Data *d = data_open(&program, directory, "train", 0);
    return (strcmp(name, "train") == 0 ? d : data_open(&program, directory, name, 0))->n;
}

static void open_named(void)
{
    data_open(&program, directory, "train", 0);
}

START_TEST(a_table_with_the_name_of_its_directory)
{
    char name[64];
    begin(1);
    program.recipe.test = 0;
    snprintf(name, sizeof name, "%s.csv", strrchr(directory, '/') + 1);
    write_file(name, "a,kind\n1,x\n2,y\n3,x\n4,y\n5,x\n6,y\n7,x\n8,y\n9,x\n10,y\n11,x\n12,y\n13,x\n14,y\n15,x\n16,y\n");
    const int64_t most = rows("train"); /* a fifth is the test split */
    ck_assert_msg(most < 16 && most + rows("test") == 16, "%lld rows", (long long)most);
    write_file("test.csv", "a,kind\n1,x\n2,y\n");
    ck_assert_int_eq(rows("train"), 16); /* the test split has a file */
    ck_assert_int_eq(rows("test"), 2);
    program.recipe.test = 0.5;
    ck_assert_ptr_nonnull(strstr(last_words(open_named), "holds a split 'test' of its own"));
    snprintf(file, sizeof file, "%s/%s", directory, name);
    end();
}
END_TEST

static const char *faulty;

static void open_faulty(void)
{
    open_split(faulty);
}

static void refuses(const char *text, const char *message)
{
    faulty = text;
    const char *said = last_words(open_faulty);
    ck_assert_msg(strstr(said, message) != NULL, "%s\nnot: %s", said, message);
}

START_TEST(each_fault_has_its_place)
{
    begin(1);
    refuses("", "train.csv is empty: its first row must hold");
    refuses("\n\n", "train.csv is empty");
    refuses("1,2\n3,4\n", "train.csv:1: the first row must hold the names of the columns, and it holds numbers: 1, 2");
    refuses("a,b,a,kind\n", "train.csv:1: columns 1 and 3 are both called 'a': rename one of them");
    refuses("a,kid\n1,x\n", "train.csv has no column 'kind', did you mean 'kid'?");
    refuses("a,other\n1,x\n", "train.csv has no column 'kind': its first row has a, other");
    refuses("kind\nx\n", "train.csv has no column for the input of test: all are targets");
    refuses(",a,kind\n1,2,x\n", "train.csv: column 1 has no name, and would be an input: give it a name, or list the inputs: "
                               "csv(..., input = [\"a\", ...])");
    refuses("kind,\nx,1\n", "or list the inputs: csv(..., input = [...])");
    refuses("a,kind\n", "has no row: the file has only the names of the columns");
    program.recipe.test = 0.999;
    refuses("a,kind\n1,x\n2,y\n", "has no row: the 2 of the file are too few for these shares");
    program.recipe.test = 1e-300;
    refuses("a,kind\n1,x\n2\n", "train.csv:3: 1 field where the first row has 2 names");
    refuses("a,kind\n1,x\n2,y,z\n", "train.csv:3: 3 fields where the first row has 2 names: put texts that hold a separator in quotes");
    refuses("a,kind\n1,x\n,y\n", "train.csv:3: column 'a' is empty: fill the gap, remove the row, or build with csv(..., missing = mean): the weights stay valid");
    refuses("a,kind\n1,x\nNaN,y\n", "train.csv:3: column 'a' is 'NaN', a missing value: fill the gap");
    refuses("a,kind\n1,x\ninf,y\n3,y\n", "train.csv:3: column 'a' is 'inf', not a finite number: correct it, or remove the row");
    refuses("a,kind\n-infinity,x\n1,y\ninf,y\n", "train.csv:2: column 'a' is '-infinity', not a finite number");
    refuses("a;kind\n1;x\n2,5;y\n", "train.csv:3: column 'a' is '2,5', not a number: write it with a point, and without a comma between thousands");
    refuses("a;kind\n1,5;x\n2,5;y\n7;x\n", "train.csv:2: column 'a' is '1,5', not a number: write it with a point");
    refuses("a;kind\n-1.234,5;x\n2,5;y\n", "train.csv:2: column 'a' is '-1.234,5', not a number: write it with a point, and without a comma "
                                            "between thousands, or name the column in categories = [\"a\"]");
    refuses("a,kind\r1,x\r2,y\r", "train.csv has lines that end in CR alone: save it with ends of lines LF or CR LF");
    refuses("sep=;\na;kind\n1;x\n2;y\n", "train.csv:1: the line 'sep=' is for a spreadsheet: remove it");
    refuses("a|kind\n1|x\n", "train.csv has no column 'kind': its first row has a|kind, without a comma, semicolon or tab between columns");
    refuses("a,kind\n1,x\n2,x\n", "has the class x in each row of the training split: there is nothing to learn");
    refuses("a,kind\n1,x\n1e39,y\n", "train.csv:3: column 'a' is '1e39', too large for f32");
    refuses("a,kind\n1,x\n2,y\nbig,y\n", "train.csv:4: column 'a' is 'big', and '1' in line 2: a column holds numbers or categories: correct "
                                         "it, or name the column in categories = [\"a\"]");
    refuses("a,kind\n\"1\nx\",x\n2,y\n3,y\n", "train.csv:2: column 'a' is '1?x', and '2' in line 4");
    refuses("a,kind\n1,x\n\"2,y\n", "train.csv:3: the quote in column 1 is not closed");
    refuses("a,kind\n\"1\"2,x\n", "train.csv:2: column 1 has text after its closing quote");
    refuses("a,kind\n1,x\n2,\n3,y\n", "train.csv:3: column 'kind' is empty: fill the gap, or remove the row: a target has no other value");
    refuses("a,kind\n1,x\n2,y\n3,z\n", "the column 'kind' of ");
    refuses("a,b,kind\nred,1,x\nblue,2,y\n", "give 3 numbers (a 2, b 1), but the input of test takes 1: declare it with 3");
    static const char *const no_input[] = {"kind"};
    program.recipe.table.category = (RtNames){1, no_input};
    refuses("a,kind\n1,x\n2,y\n", "is no input, and categories = [...] names columns of inputs: remove it there");
    program.recipe.table.category = (RtNames){0};
    refuses("a,kind\n1,x\n2,Gr\xF6\xDF\x65\n", "train.csv:3: the byte 0xF6 is not UTF-8: save the table as UTF-8");
    refuses("Gr\xC3\xB6\xC3,kind\n1,x\n2,y\n", "train.csv:1: the byte 0xC3 is not UTF-8");
    refuses("\xFF\xFE" "a,kind\n", "train.csv is in UTF-16: save it as UTF-8");
    end();
}
END_TEST

START_TEST(the_test_split_uses_what_the_training_split_had)
{
    begin(2);
    open_split("a,kind\nred,x\nblue,y\n");
    split = "test";
    faulty = "a,kind\nred,x\nblue,y\n";
    write_file("test.csv", "a,kind\nred,x\nblu,y\n");
    program.recipe.test = 0;
    refuses(faulty, "test.csv:3: column 'a' is 'blu', which no row of the training split has, did you mean 'blue'?: correct it, or "
                    "write csv(..., unknown = other)");
    write_file("test.csv", "a,kind\nred,x\nblue,maybe\n");
    refuses(faulty, "test.csv:3: column 'kind' is 'maybe', which no row of the training split has, whose values are x, y: correct it, or "
                    "remove the row");
    program.recipe.test = 0.5;
    refuses(faulty, "holds a split 'test' of its own, ");
    snprintf(file, sizeof file, "%s/train.csv", directory);
    end();
}
END_TEST

START_TEST(a_number_far_from_all_others)
{
    begin(1);
    open_split("a,kind\n1,x\n1.000001,y\n");
    split = "test";
    program.recipe.test = 0;
    write_file("test.csv", "a,kind\n-3e38,x\n");
    refuses("a,kind\n1,x\n1.000001,y\n", "test.csv:2: column 'a' is '-3e38', 6e+44 standard deviations from the mean of the training split");
    snprintf(file, sizeof file, "%s/train.csv", directory);
    end();
}
END_TEST

/* Changes a table in a few places, as wrong files differ from right ones. */
static void mutate(char *text, size_t room)
{
    static const char *const piece[] = {"\"", "\"\"", ",", ";", "\t", "\n", "\r\n", "1e999", "nan", "-inf", "0x1p-1070", " ", "?", "\xC3", "\xFF\xFE"};
    for (int times = rand() % 4; times > 0; times--) {
        const size_t n = strlen(text), at = (size_t)rand() % (n + 1);
        const char *more = piece[(size_t)rand() % (sizeof piece / sizeof *piece)];
        if (rand() % 3 == 0 && at < n)
            memmove(text + at, text + at + 1, n - at);
        else if (n + strlen(more) < room) {
            memmove(text + at + strlen(more), text + at, n - at + 1);
            memcpy(text + at, more, strlen(more));
        }
    }
}

START_TEST(any_file_gives_samples_or_a_message)
{
    enum { FILES = 400, FINITE = 1 << 20 };
    int opened = 0;
    begin(4);
    program.recipe.table.mean = program.recipe.table.other = true;
    srand(1);
    for (int i = 0; i < FILES; i++) {
        char text[512] = "age,town,kind\n1,Ulm,b\n3,Bonn,a\n5,\"Bad, Ems\",a\n,Ulm,b\n7,,a\n";
        int status;
        mutate(text, sizeof text);
        write_file("train.csv", text);
        const pid_t child = fork();
        if (child == 0) {
            fclose(stderr);
            const Data *d = data_open(&program, directory, "train", 0);
            for (int64_t k = 0; k < d->n * 4; k++)
                if (!(fabs((double)number(d, k / 4, k % 4)) < FINITE))
                    _exit(2);
            _exit(0);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) < 2, "status %d for\n%s", status, text);
        opened += WEXITSTATUS(status) == 0;
    }
    ck_assert_msg(opened > FILES / 10 && opened < FILES, "%d of %d files were opened", opened, FILES);
    end();
}
END_TEST

START_TEST(weights_of_other_targets)
{
    Column column[2] = {{.name = "a", .deviation = 1}, {.name = "kind"}};
    const Columns number = {.at = column, .ninput = 1, .n = 2};
    begin(1);
    columns_take(&number);
    refuses("a,kind\n1,x\n2,y\n", "the weights have learned 'kind' from a table, which are not the targets of test");
    Column other[2] = {{.name = "a", .deviation = 1}, {.name = "sort", .category = true}};
    table_add(&other[1].value, "x", 1);
    const Columns name = {.at = other, .ninput = 1, .n = 2};
    columns_take(&name);
    refuses("a,kind\n1,x\n2,y\n", "the weights have learned 'sort' (classes) from a table, which are not the targets of test");
    const Columns none = {.at = other, .ninput = 1, .n = 1};
    columns_take(&none);
    refuses("a,kind\n1,x\n2,y\n", "the weights have learned no target from a table");
    end();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("tables");
    TCase *t = tcase_create("tables");
    tcase_add_test(t, columns_become_numbers_categories_and_classes);
    tcase_add_test(t, quotes_hold_quotes_and_lines);
    tcase_add_test(t, names_hold_lines_before_the_separator);
    tcase_add_test(t, long_texts_are_cut_between_characters);
    tcase_add_test(t, numbers_with_commas_can_be_categories);
    tcase_add_test(t, gaps_and_unknown_categories);
    tcase_add_test(t, equal_numbers_become_zeros);
    tcase_add_test(t, tokens_number_the_categories_of_all_columns);
    tcase_add_test(t, columns_are_saved_and_read);
    tcase_add_test(t, no_sample_moves_when_samples_are_added);
    tcase_add_test(t, a_table_with_the_name_of_its_directory);
    tcase_add_test(t, each_fault_has_its_place);
    tcase_add_test(t, the_test_split_uses_what_the_training_split_had);
    tcase_add_test(t, a_number_far_from_all_others);
    tcase_add_test(t, any_file_gives_samples_or_a_message);
    tcase_add_test(t, weights_of_other_targets);
    suite_add_tcase(s, t);
    return suite_run(s);
}
