// Kills `ev bulk` with SIGKILL repeatedly and resumes it. The output must equal that of an
// undisturbed run, and only recipients in flight may be probed twice.
// node bench/crash.ts [rows] [kills] [seed]
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'csv-parse/sync'
import type { Scenario } from '../src/simulator/scenario.ts'
import { type SimulatorProcess, startScenarioProcess } from '../src/simulator/simulator-process.ts'

const [rows = 20_000, kills = 10, seed = 1] = process.argv.slice(2).map(Number)
const ev = join(import.meta.dirname, '../bin/ev.js')
const dir = mkdtempSync(join(tmpdir(), 'ev-crash-'))
const list = join(dir, 'list.csv')
const domains = Math.max(10, Math.round(rows / 100))

/** xorshift32: the same seed kills at the same times. */
let state = seed || 1
const random = () => {
  state ^= state << 13
  state ^= state >>> 17
  state ^= state << 5
  return (state >>> 0) / 2 ** 32
}

writeFileSync(list, csv())
const simulator = await startScenarioProcess(scenario())
const undisturbed = await run('undisturbed', 0)
await simulator.reset()
const killed = await run('killed', kills)
const counters = await simulator.counters()
await simulator.close()

const again = [...counters.total.recipients.values()].filter(times => times > 1)
const probedTwice = again.reduce((sum, times) => sum + times - 1, 0)
const inFlightMax = killed.kills * (200 * 20 + 50)
const verbs = Object.keys(counters.total.commands).filter(verb => !ALLOWED().has(verb))
const sessionsPeak = Math.max(...Object.values(counters.hosts).map(host => host.sessionsPeak))
const same = undisturbed.output === killed.output
console.log(
  JSON.stringify(
    {
      rows,
      kills: killed.kills,
      undisturbedSeconds: undisturbed.seconds,
      killedSeconds: killed.seconds,
      outputIdentical: same,
      recipientsProbedTwice: probedTwice,
      inFlightMax,
      sessionsPeakPerHost: sessionsPeak,
      connections: counters.total.connections,
      otherCommands: verbs,
    },
    null,
    2,
  ),
)
rmSync(dir, { recursive: true, force: true })
if (!same || probedTwice > inFlightMax || verbs.length > 0 || sessionsPeak > 1) process.exitCode = 1

function ALLOWED() {
  return new Set(['EHLO', 'HELO', 'STARTTLS', 'MAIL', 'RCPT', 'RSET', 'QUIT', 'NOOP'])
}

/** Polite hosts, one in twenty a catch-all. */
function scenario(): Scenario {
  const plan: Scenario['domains'] = {}
  const hosts: Scenario['hosts'] = {}
  for (let n = 0; n < domains; n++) {
    plan[`d${n}.test`] = { mx: [[10, `mx.d${n}.test`]] }
    hosts[`mx.d${n}.test`] = { behavior: n % 20 === 7 ? 'catch-all' : 'polite' }
  }
  return { domains: plan, hosts, mailboxes: ['user*'], roundTripMs: 200 }
}

function csv(): string {
  const lines = ['id,email,note']
  for (let n = 0; n < rows; n++) {
    const name = n % 11 === 3 ? `gone${n}` : `user${n}`
    lines.push(`${n},${name}@d${n % domains}.test,"row, ${n}"`)
  }
  return `${lines.join('\n')}\n`
}

async function run(name: string, times: number) {
  const home = join(dir, name)
  mkdirSync(home)
  const output = join(dir, `${name}.csv`)
  const startedAt = performance.now()
  let killsDone = 0
  for (;;) {
    const child = start(home, output, simulator)
    const ended = once(child, 'exit') as Promise<[number | null, string | null]>
    if (killsDone < times) {
      const timer = setTimeout(() => child.kill('SIGKILL'), 900 + random() * 1_800)
      const [code, signal] = await ended
      clearTimeout(timer)
      if (signal === 'SIGKILL') killsDone++
      else if (code === 0) break
      else throw new Error(`ev bulk ended with ${code}`)
      continue
    }
    const [code] = await ended
    if (code !== 0) throw new Error(`ev bulk ended with ${code}`)
    break
  }
  const seconds = Math.round((performance.now() - startedAt) / 100) / 10
  return { kills: killsDone, seconds, output: withoutTimes(readFileSync(output, 'utf8')) }
}

function start(
  home: string,
  output: string,
  { dnsAddress, smtpPort }: SimulatorProcess,
): ChildProcess {
  const settings = ['--dns', dnsAddress, '--smtp-port', String(smtpPort), '--special-domains']
  settings.push('--allow-ranges', '127.0.0.0/8', '--helo', 'probe.example.com')
  settings.push('--sessions-per-operator', '1', '--data-dir', join(home, 'data'))
  return spawn(process.execPath, [ev, 'bulk', list, '-o', output, ...settings], {
    env: { PATH: process.env.PATH, HOME: home },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
}

/** Removes the times of the checks, which differ between runs. */
function withoutTimes(text: string): string {
  const table = parse(text) as string[][]
  const times = table[0]?.indexOf('ev_checked_at') ?? -1
  return table.map(row => row.filter((_, column) => column !== times).join('\u0001')).join('\n')
}
