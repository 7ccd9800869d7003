// npm run demo:dashboard: the service with its dashboard, in front of a small mail world on loopback. No internet, no
// port 25, no root. Ctrl-C ends it; nothing of it is kept.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const { startSimulatorProcess } = await import(join(root, 'dist/simulator/simulator-process.js'))

const dataDir = mkdtempSync(join(tmpdir(), 'ev-demo-'))
const world = await startSimulatorProcess(join(root, 'fixtures/simulator/demo.json'))
process.stdout.write(
  'A mail world is up. Try anna.moreau@northwind-tea.example, elin.holm@fortress.test, or the list fixtures/list/demo.csv.\n',
)
const child = spawn(
  process.execPath,
  [
    ...[join(root, 'bin/ev.js'), 'serve', '--plan', 'enterprise', '--data-dir', dataDir],
    ...['--dns', world.dnsAddress, '--smtp-port', String(world.smtpPort), '--special-domains'],
    ...['--allow-ranges', '127.0.0.0/8', '--helo', 'probe.example.com', '--log', 'warn'],
    ...process.argv.slice(2),
  ],
  { stdio: 'inherit' },
)
// The terminal tells Ctrl-C to the service too: it ends, and so do we.
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.on('exit', async code => {
  await world.close()
  rmSync(dataDir, { recursive: true, force: true })
  process.exitCode = code ?? 1
})
