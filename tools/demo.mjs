// npm run demo: the true `ev bulk` against a small mail world on loopback. No internet, no port 25, no root.
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
const world = await startSimulatorProcess(join(root, 'fixtures/simulator/demo.json'))
const settings = [
  ['--dns', world.dnsAddress],
  ['--smtp-port', String(world.smtpPort)],
  ['--allow-ranges', '127.0.0.0/8'],
  ['--helo', 'probe.example.com'],
  ['--data-dir', dataDir],
].flat()
settings.push('--special-domains', '--log', 'error')

say(
  `A mail world is up: DNS on ${world.dnsAddress}, SMTP on port ${world.smtpPort} of loopback addresses.`,
)
say('Its servers are polite, catch-all, greylisting, blocking, slow, full, dead and worse.\n')
say(`$ ev bulk ${list} -o ${output}   (with the addresses of the world)`)
const bulk = await ev('bulk', list, '-o', output, ...settings, '--sessions-per-second', '20')
say('\nThree verdicts, explained:\n')
for (const address of explained) {
  say(`$ ev verify --explain ${address}`)
  await ev('verify', '--explain', address, ...settings)
}
await world.close()
rmSync(dataDir, { recursive: true, force: true })
say(`Every row of ${list} with its result is in ${output}. Against the real network, type:\n`)
say('  npx ev verify you@your-domain.com')
say('  npx ev bulk your-list.csv -o results.csv\n')
say(
  'Both need to reach port 25 of mail servers, which many offices and cloud hosts block: npx ev doctor',
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
