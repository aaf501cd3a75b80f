#pragma once

namespace CLI {
class App;
}

namespace quoin::cli {

class Program;

// Each adds its subcommand to the program; the subcommand runs when the command line has been read. One file each.
void add_factor(CLI::App& program);
void add_lstsq(CLI::App& program);
void add_svd(CLI::App& program);
void add_plan(CLI::App& program);
void add_info(CLI::App& program);
void add_tune(CLI::App& program);
void add_demo(CLI::App& program);
void add_run(Program& program);

}  // namespace quoin::cli
