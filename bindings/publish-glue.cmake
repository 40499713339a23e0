# Publishes the glues NAME.node.mjs and NAME.web.mjs from the folders under FROM to TO; those with threads, with what starts a worker
# put right. Every replacement must find its place, so that another Emscripten cannot pass by unnoticed.

# One replacement of a pattern, which must be there.
function(replace text pattern by)
  string(REGEX REPLACE "${pattern}" "${by}" result "${${text}}")
  if(result STREQUAL ${text})
    message(FATAL_ERROR "${NAME}: the glue of this Emscripten has no ${pattern}")
  endif()
  set(${text} "${result}" PARENT_SCOPE)
endfunction()

# The text of a glue; CMake's own meaning of [ ] ; \ in lists must not touch it, so it only goes through quoted arguments.
file(READ ${FROM}/node/${NAME}.mjs node)
file(READ ${FROM}/web+worker/${NAME}.mjs web)

set(new_worker "new Worker\\(new URL\\([\"']${NAME}\\.mjs[\"'], *import\\.meta\\.url\\), *([A-Za-z_$]+|{[^}]*})\\)")

if(NAME MATCHES "-threads$")
  # A worker that does not start is an error of createLookback(), not of the whole program.
  foreach(glue node web)
    replace(${glue} "err\\(`\\\${message} \\\${e\\.filename}:\\\${e\\.lineno}: \\\${e\\.message}`\\); *throw e" "Module.onWorkerError(e)")
  endforeach()
  set(worker "${web}")
  # Node.js has no Worker among its globals, and importing us must not give it one.
  replace(node "global\\.Worker *= *([A-Za-z_$.]+)" "var Worker=\\1")
  # A worker runs the same glue, under the name that it is published by, and without the flags of the program: some suit no worker.
  replace(node "${new_worker}" "new Worker(new URL(\"${NAME}.node.mjs\",import.meta.url),{workerData:\"em-pthread\",execArgv:[]})")
  # Bundlers want literal options, a file of its own for a worker (Vite refuses one that starts itself), and a name of its own (webpack
  # makes one file of two workers with the same name).
  replace(web "${new_worker}"
    "new Worker(new URL(\"./${NAME}.worker.mjs\",import.meta.url),{type:\"module\",name:\"em-pthread-${NAME}\"})")
  # A worker starts no others and gets its wasm sent.
  replace(worker "${new_worker}" "null")
  replace(worker "new URL\\([\"']${NAME}\\.wasm[\"'], *import\\.meta\\.url\\)\\.href" "\"\"")
  file(WRITE ${TO}/${NAME}.worker.mjs "${worker}")
endif()
file(WRITE ${TO}/${NAME}.node.mjs "${node}")
file(WRITE ${TO}/${NAME}.web.mjs "${web}")
