// The parser of separated values: bytes in, cells out.
#include "module.hpp"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "table/csv.hpp"
#include "arrays.hpp"
#include "buffers.hpp"
#include "turn.hpp"

namespace {

using namespace apsvm;
using svmlight::Buffer;
using table::Column;
using table::CsvError;

PyObject *csv_error_type = nullptr;

// Runs `work` without the GIL; a CsvError becomes the Python exception with args (line, column or -1, message).
template <class Work>
void run_unlocked(Work work) {
    std::optional<CsvError> error;
    {
        nb::gil_scoped_release unlocked;
        try {
            work();
        } catch (CsvError &caught) {
            error = std::move(caught);
        }
    }
    if (error) {
        const nb::tuple arguments = nb::make_tuple(error->line, error->column, nb::str(error->message.c_str()));
        PyErr_SetObject(csv_error_type, arguments.ptr());
        throw nb::python_error();
    }
}

std::vector<Column> columns_of(std::string_view columns) {
    std::vector<Column> result;
    for (const char c : columns) {
        if (std::string_view("clts").find(c) == std::string_view::npos)
            throw std::invalid_argument("expected columns of c, l, t and s");
        result.push_back(c == 'c'   ? Column::cells
                         : c == 'l' ? Column::labels
                         : c == 't' ? Column::text
                                    : Column::skip);
    }
    if (result.empty()) throw std::invalid_argument("expected at least one column");
    return result;
}

class CsvParser {
public:
    explicit CsvParser(table::CsvParser::Options options) : parser_(std::move(options)) {}

    void feed(const nb::bytes &block) {
        const Turn turn(mutex_);
        const std::string_view text(static_cast<const char *>(block.data()), block.size());
        run_unlocked([&] { parser_.feed(text); });
    }

    void finish() {
        const Turn turn(mutex_);
        run_unlocked([&] { parser_.finish(); });
    }

    nb::object take() {
        const Turn turn(mutex_);
        Buffer cells = parser_.take();
        const std::size_t n_kept = parser_.n_kept(), n = n_kept == 0 ? 0 : cells.size<double>() / n_kept;
        double *memory = nullptr;
        const nb::capsule owner = owner_of(cells, memory);
        return nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<2>>(memory, {n, n_kept}, owner));
    }

    nb::list words(std::size_t kept, std::size_t from) {
        const Turn turn(mutex_);
        if (kept >= parser_.n_kept()) throw std::invalid_argument("expected the number of a column that is kept");
        nb::list result;
        const auto &words = parser_.dictionary(kept).words();
        for (std::size_t at = from; at < words.size(); ++at)
            result.append(nb::bytes(words[at]->data(), words[at]->size()));
        return result;
    }

    nb::tuple apart() {
        const Turn turn(mutex_);
        return nb::make_tuple(to_numpy(std::vector(parser_.rows_apart())), to_numpy(std::vector(parser_.lines_apart())));
    }

private:
    table::CsvParser parser_;
    std::mutex mutex_;
};

}  // namespace

void bind_table(nb::module_ &m) {
    csv_error_type = PyErr_NewException("apsvm._native._kernels.CsvError", PyExc_ValueError, nullptr);
    if (csv_error_type == nullptr) throw nb::python_error();
    m.attr("CsvError") = nb::borrow(csv_error_type);

    nb::class_<CsvParser>(m, "CsvParser", "Push parser of separated values: feed() it the bytes, take() gives the cells.")
        .def(
            "__init__",
            [](CsvParser *self, const char *columns, char separator, char decimal, std::int64_t first_line,
               std::size_t most_words, std::size_t longest_row) {
                if (separator == '.' || separator == '"' || separator == ' ' || separator == '\n' || separator == '\r')
                    throw std::invalid_argument("expected a separator that is no point, quote, blank or line end");
                if (first_line < 0 || first_line > std::int64_t{1} << 62)
                    throw std::invalid_argument("expected a first line of a file");
                if (decimal != '.' && decimal != ',') throw std::invalid_argument("expected a decimal of . or ,");
                new (self) CsvParser({separator, decimal, columns_of(columns), first_line, most_words, longest_row});
            },
            nb::kw_only(), nb::arg("columns"), nb::arg("separator") = ',', nb::arg("decimal") = '.',
            nb::arg("first_line") = 1, nb::arg("most_words") = std::size_t{1} << 20,
            nb::arg("longest_row") = std::size_t{1} << 26,
            "columns: a letter each, c of cells, l of labels, of which none is a word, t of text whose cells are words as "
            "they stand, s of those to skip.")
        .def("feed", &CsvParser::feed, nb::arg("block"), "Parses the next bytes; raises CsvError(line, column, message).")
        .def("finish", &CsvParser::finish, "Parses what is left; raises CsvError.")
        .def("take", &CsvParser::take,
             "The cells (rows, kept columns) float64 of the rows since the last call: a number; the missing cell, the "
             "NaN 0x7ff8000000000000; or word k of its column, that bit pattern + 1 + k.")
        .def("words", &CsvParser::words, nb::arg("kept"), nb::arg("first") = 0,
             "The words of a kept column in the order of their numbers, from number `first` on: bytes.")
        .def("apart", &CsvParser::apart,
             "(rows, lines) int64: the rows, from 0, that do not stand in the line behind the row before, and their "
             "lines. Row 0 is expected in first_line.");
}
