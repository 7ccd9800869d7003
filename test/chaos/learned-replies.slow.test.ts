import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Scenario } from '../../src/simulator/scenario.ts'
import {
  type SimulatorProcess,
  startScenarioProcess,
} from '../../src/simulator/simulator-process.ts'
import { rowsOf } from '../support/csv.ts'
import { emptyFolder, runEv, simulatorFlags, startEv } from '../support/ev-process.ts'
import { startService } from '../support/service-process.ts'
import { waitUntil } from '../support/wait.ts'

const TAUGHT = ['d0.test', 'd1.test', 'd2.test']

/** One operator, whose servers know `ann` and say a text that no rule knows to all others. */
function scenario(): Scenario {
  const domains = [...TAUGHT, 'new.test']
  const rules = [
    { on: 'RCPT', to: 'ann', reply: '250 2.1.5 Ok' },
    { on: 'RCPT', reply: '550 <{to}> ei asu meillä' },
  ] as const
  return {
    domains: {
      ...Object.fromEntries(domains.map((name, n) => [name, { mx: [[10, `mx${n}.op.test`]] }])),
      'hang.test': { mx: [[10, 'mx.hang.test']] },
    },
    hosts: {
      ...Object.fromEntries(
        domains.map((_, n) => [`mx${n}.op.test`, { behavior: 'polite', rules } as const]),
      ),
      'mx.hang.test': { behavior: 'polite', rules: [{ on: 'RCPT', end: 'hang' }] },
    },
  }
}

let simulator: SimulatorProcess
beforeAll(async () => {
  simulator = await startScenarioProcess(scenario())
})
afterAll(() => simulator.close())

type Verified = { readonly evidence: { readonly answer: object } }

/** The same settings as `simulatorFlags`, for commands without these flags. */
const environment = () => ({
  EV_DNS: simulator.dnsAddress,
  EV_SMTP_PORT: `${simulator.smtpPort}`,
  EV_ALLOW_RANGES: '127.0.0.0/8',
})

async function learnedReplies(home: string): Promise<readonly Record<string, unknown>[]> {
  const args = ['feedback', 'report', '--json', '--data-dir', 'data']
  const { stdout } = await runEv(args, { home, environment: environment() })
  return JSON.parse(stdout).learned_replies
}

const TEXT = {
  reply: '550 <> ei asu meilla',
  domains: 3,
  operators: 1,
  operator: 'op.test',
  refuted: 0,
}

test('what a list has learned survives a kill with -9', { timeout: 60_000 }, async () => {
  const home = emptyFolder()
  const bulk = (list: string, emails: readonly string[]) => {
    writeFileSync(join(home, list), `email\n${emails.join('\n')}\n`)
    return ['bulk', list, '-o', 'out.csv', '--data-dir', 'data', ...simulatorFlags(simulator)]
  }
  const teaching = [...TAUGHT, 'hang.test'].map(domain => `ann@${domain}`)
  const running = startEv(bulk('first.csv', teaching), { home })
  await waitUntil(async () => (await learnedReplies(home))[0]?.domains === 3)
  running.child.kill('SIGKILL')
  expect(await running.ended).toMatchObject({ signal: 'SIGKILL' })
  const emails = ['x1@new.test', 'x2@d0.test', 'ann@d0.test']
  expect(await runEv(bulk('second.csv', emails), { home })).toMatchObject({ code: 0 })
  const rows = rowsOf(readFileSync(join(home, 'out.csv'), 'utf8'))
  expect(rows.map(row => [row.email, row.ev_reason, row.ev_confidence])).toEqual([
    ['x1@new.test', 'rejected_email', '85'],
    ['x2@d0.test', 'rejected_email', '90'],
    ['ann@d0.test', 'accepted_email', '95'],
  ])
  expect(await learnedReplies(home)).toEqual([TEXT])
})

test('what a service has learned survives a kill with -9', { timeout: 60_000 }, async () => {
  const home = emptyFolder()
  const first = await startService(home, simulatorFlags(simulator))
  const verify = async (service: { readonly url: string }, email: string): Promise<Verified> => {
    const response = await fetch(`${service.url}/v1/verify?include=evidence`, {
      method: 'POST',
      headers: { authorization: `Bearer ${first.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ email }),
    })
    return (await response.json()) as Verified
  }
  for (const domain of TAUGHT) {
    expect(await verify(first, `ann@${domain}`)).toMatchObject({ reason: 'accepted_email' })
  }
  await waitUntil(async () => (await learnedReplies(home))[0]?.domains === 3)
  await first.end('SIGKILL')
  const second = await startService(home, simulatorFlags(simulator))
  const result = await verify(second, 'x1@new.test')
  expect(result).toMatchObject({ reason: 'rejected_email', confidence: 85 })
  expect(result.evidence.answer).toMatchObject({
    learned: { scope: 'operator', domains: 3 },
    meaning: expect.stringContaining('3 domains of this server gave to a random recipient'),
  })
  await second.end('SIGTERM')
})
