// SPDX-License-Identifier: GPL-2.0-or-later
#include "processes.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>

extern char **environ;

namespace front {

std::vector<char *> pointers(const Words &words) {
    std::vector<char *> list;
    for (auto &word : words)
        list.push_back(const_cast<char *>(word.c_str()));
    list.push_back(nullptr);
    return list;
}

int run(const Words &command, const std::string &out, const std::string &err) {
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&files, 2, err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    pid_t child;
    int status = -1;
    if (posix_spawn(&child, command[0].c_str(), &files, nullptr, pointers(command).data(), environ))
        return -1;
    posix_spawn_file_actions_destroy(&files);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

}
