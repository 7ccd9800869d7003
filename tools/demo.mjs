// npm run demo: `ev bulk` with simulated mail servers on loopback. Needs no internet, port 25 or
// root.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const { startSimulatorProcess } = await import(join(root, 'dist/simulator/simulator-process.js'))

const list = 'fixtures/list/demo.csv'
const output = 'demo-out.csv'
const explained = [
  'anna.moreau@northwind-tea.example',
  'nobody.here@lindgren-bakery.test',
  'elin.holm@fortress.test',
]

const dataDir = mkdtempSync(join(tmpdir(), 'ev-demo-'))
const simulator = await startSimulatorProcess(join(root, 'fixtures/simulator/demo.json'))
const settings = [
  ['--dns', simulator.dnsAddress],
  ['--smtp-port', String(simulator.smtpPort)],
  ['--allow-ranges', '127.0.0.0/8'],
  ['--helo', 'probe.example.com'],
  ['--data-dir', dataDir],
].flat()
settings.push('--special-domains', '--log', 'error')

say(
  `Simulated mail servers are running: DNS on ${simulator.dnsAddress}, SMTP on port ${simulator.smtpPort} of loopback addresses.`,
)
say('Some accept all addresses, greylist, block, are slow, full or down.\n')
say(`$ ev bulk ${list} -o ${output}   (with the settings of the simulator)`)
const bulk = await ev('bulk', list, '-o', output, ...settings, '--sessions-per-second', '20')
say('\nThree verdicts, explained:\n')
for (const address of explained) {
  say(`$ ev verify --explain ${address}`)
  await ev('verify', '--explain', address, ...settings)
}
await simulator.close()
rmSync(dataDir, { recursive: true, force: true })
say(`${output} has every row of ${list} with its result. To verify real addresses, run:\n`)
say('  npx ev verify you@your-domain.com')
say('  npx ev bulk your-list.csv -o results.csv\n')
say(
  'Both need outbound port 25, which many offices and cloud hosts block. Check with: npx ev doctor',
)
process.exitCode = bulk

function ev(...args) {
  return new Promise(resolve => {
    const child = spawn(process.execPath, [join(root, 'bin/ev.js'), ...args], {
      cwd: root,
      stdio: 'inherit',
    })
    child.on('exit', code => resolve(code ?? 1))
  })
}

function say(line) {
  process.stdout.write(`${line}\n`)
}
