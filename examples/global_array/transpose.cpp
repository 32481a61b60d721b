// A matrix in a global array is transposed: each process reads the columns that become its rows, and writes them
// to another array. Then each element is added to a histogram that is spread over all processes.
#include "global_array.hpp"

extern "C" {
#include "../example.h"
#include "../handles.h"
}

static Option options[] = {{"rows", "120", "rows and columns"}, {"bins", "16", "bins of the histogram"},
                           {nullptr, nullptr, nullptr}};

static double value(std::size_t row, std::size_t column) { return static_cast<double>(row * 1000 + column); }

int main(int argc, char **argv) {
    example_begin(&argc, &argv, "A matrix in a global array is transposed.", options);
    if (!has_handles()) {
        std::fprintf(stderr, "global_array: start it with fompirun: it needs libfompi\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const auto rows = static_cast<std::size_t>(option_number(options, "rows", 1));
    const auto bins = static_cast<std::size_t>(option_number(options, "bins", 1));
    int is_right = 1;
    {
        global::Team team(MPI_COMM_WORLD);
        global::Array<double> matrix(team, rows * rows), transposed(team, rows * rows);
        global::Array<long> histogram(team, bins);
        for (std::size_t i = 0; i < matrix.local_size(); i++) {
            const std::size_t at = matrix.first() + i;
            matrix.begin()[i] = value(at / rows, at % rows);
        }
        team.barrier();
        const double begin = MPI_Wtime();
        // Each process makes every size-th row.
        for (auto row = static_cast<std::size_t>(team.rank()); row < rows; row += static_cast<std::size_t>(team.size())) {
            std::vector<double> column(rows);
            for (std::size_t i = 0; i < rows; i++) matrix.get(i * rows + row, &column[i], 1);
            team.flush();
            transposed.put(row * rows, column.data(), rows);
            team.flush();
            for (std::size_t i = 0; i < rows; i++) histogram.add((row + i) % bins, 1);
        }
        team.barrier();
        const double seconds = MPI_Wtime() - begin;
        for (std::size_t i = 0; i < transposed.local_size(); i++) {
            const std::size_t at = transposed.first() + i;
            is_right &= transposed.begin()[i] == value(at % rows, at / rows);
        }
        long counted = 0;
        for (std::size_t bin = 0; bin < bins; bin++) counted += histogram[bin];
        is_right &= counted == static_cast<long>(rows * rows);
        is_right &= transposed[rows * rows - 1] == value(rows - 1, rows - 1);
        team.barrier(); // all have looked
        if (team.rank() == team.size() - 1) transposed[0] = -1.0;
        team.barrier();
        is_right &= transposed[0] == -1.0;
        is_right = example_result("global_array", "transpose", seconds, is_right, "rows=%ld", static_cast<long>(rows));
    }
    MPI_Finalize();
    return is_right ? 0 : 1;
}
