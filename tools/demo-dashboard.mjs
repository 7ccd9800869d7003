// npm run demo:dashboard: the service and its dashboard with simulated mail servers on loopback.
// Needs no internet, port 25 or root. Ctrl-C stops it and deletes its data.
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const { startSimulatorProcess } = await import(join(root, 'dist/simulator/simulator-process.js'))

const dataDir = mkdtempSync(join(tmpdir(), 'ev-demo-'))
const simulator = await startSimulatorProcess(join(root, 'fixtures/simulator/demo.json'))
process.stdout.write(
  'Simulated mail servers are running. Try anna.moreau@northwind-tea.example, elin.holm@fortress.test or the list fixtures/list/demo.csv.\n',
)
const child = spawn(
  process.execPath,
  [
    ...[join(root, 'bin/ev.js'), 'serve', '--plan', 'enterprise', '--data-dir', dataDir],
    ...[
      '--dns',
      simulator.dnsAddress,
      '--smtp-port',
      String(simulator.smtpPort),
      '--special-domains',
    ],
    ...['--allow-ranges', '127.0.0.0/8', '--helo', 'probe.example.com', '--log', 'warn'],
    ...process.argv.slice(2),
  ],
  { stdio: 'inherit' },
)
// A provider of the demo blocks every client, so rows would wait half an hour for its next attempt.
const POLL_MS = 5_000
const POLLS_WITHOUT_PROGRESS = 3
const seen = new Map()
const poll = setInterval(async () => {
  const jobs = JSON.parse((await ev('jobs', 'list', '--json')) || '[]')
  for (const { job_id, done } of jobs.filter(job => job.state === 'processing')) {
    const before = seen.get(job_id)
    const polls = before?.done === done ? before.polls + 1 : 0
    seen.set(job_id, { done, polls })
    if (polls === POLLS_WITHOUT_PROGRESS) await ev('jobs', 'finish', job_id)
  }
}, POLL_MS)

/** Runs a command on the data of the service and returns its output; empty if it fails. */
function ev(...args) {
  return new Promise(resolve =>
    execFile(
      process.execPath,
      [join(root, 'bin/ev.js'), ...args, '--data-dir', dataDir],
      (error, stdout) => resolve(error === null ? stdout : ''),
    ),
  )
}

// Waits for the service, which gets the Ctrl-C of the terminal too.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.on('exit', async code => {
  clearInterval(poll)
  await simulator.close()
  rmSync(dataDir, { recursive: true, force: true })
  process.exitCode = code ?? 1
})
