import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { classOf, type EngineOptions, type Result } from '../../src/index.ts'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import type { RealServers } from '../support/real-servers.ts'

const FIXTURES = join(import.meta.dirname, '../../fixtures/real')

/** One row of fixtures/real: what is asked, and the verdict and evidence it must give. */
export type Case = {
  readonly name: string
  /** One address, or several with spaces between, of which all must end alike; `u{1..9}@a.test` stands for nine. */
  readonly addresses: readonly string[]
  /** Options of the engine, in their spelling on the command line; `list`: as a list, which asks again. */
  readonly options: readonly string[]
  readonly expected: Findings
}

/** What a result comes to; `-` where there is nothing. */
export type Findings = {
  readonly class: string
  readonly reason: string
  readonly stage: string
  readonly code: string
  readonly enhanced: string
  /** The exchanger spoken with, `+tls` after it when TLS was on; `*` where chance decides. */
  readonly host: string
}

/** The rows of a table, those of a missing one excepted. */
export function casesOf(table: string): Case[] {
  const file = join(FIXTURES, `${table}.tsv`)
  if (!existsSync(file)) return []
  const [, ...lines] = readFileSync(file, 'utf8').trimEnd().split('\n')
  return lines.map(line => {
    const cells = line.split('\t').map(cell => cell.trim())
    if (cells.length < 9) throw new Error(`${table}.tsv: nine columns and a note: ${line}`)
    const [name, addresses, options, ...found] = cells as [string, string, string, ...string[]]
    const [verdict, reason, stage, code, enhanced, host] = found as [string, ...string[]]
    return {
      name,
      addresses: (addresses.match(/(?:"[^"]*"|\S)+/g) ?? []).flatMap(spelledOut),
      options: options === '-' ? [] : options.split(' '),
      expected: { class: verdict, reason, stage, code, enhanced, host } as Findings,
    }
  })
}

/** `u{1..3}@a.test` is u1, u2 and u3. */
function spelledOut(address: string): string[] {
  const [all, first, last] = /\{(\d+)\.\.(\d+)\}/.exec(address) ?? []
  if (all === undefined) return [address]
  const count = Number(last) - Number(first) + 1
  return Array.from({ length: count }, (_, n) => address.replace(all, String(Number(first) + n)))
}

/** Asks as the row says, with an engine of its own, which has nothing in its memory. */
export async function ask(services: RealServers, { addresses, options }: Case): Promise<Result[]> {
  const isList = options.includes('list')
  const engine = services.engine(engineOptions(services, options))
  if (!isList) return Promise.all(addresses.map(address => engine.verify(address, DIALOGUE)))
  const results: Result[] = []
  for await (const result of engine.verifyMany(addresses)) results.push(result)
  return results
}

const DIALOGUE = { include: ['dialogue'] } as const

/** What is compared with the row; where that says `*`, so does this. */
export function findingsOf({ verdict, evidence }: Result, { expected }: Case): Findings {
  const { answer, host, tls } = evidence
  const reply = answer === null || answer.kind === 'no-response' ? null : answer.reply
  return {
    class: classOf(verdict),
    reason: verdict.reason,
    stage: answer?.stage ?? '-',
    code: String(reply?.code ?? '-'),
    enhanced: reply?.enhanced ?? '-',
    host: expected.host === '*' ? '*' : `${host ?? '-'}${tls ? '+tls' : ''}`,
  }
}

/** For the message when a row fails: what was said. */
export const storyOf = ({ email, evidence }: Result) =>
  [email, JSON.stringify(evidence.answer), ...(evidence.dialogue ?? [])].join('\n')

function engineOptions(services: RealServers, options: readonly string[]): EngineOptions {
  const given = options.filter(option => option !== 'list').map(option => option.split('='))
  return Object.assign(
    {},
    ...given.map(([key = '', value = '']) => oneOption(services, key, value)),
  )
}

/** A hundred times as quick: what waits five minutes waits three seconds. Servers may take their time all the same. */
const HASTY: EngineOptions = {
  clock: hastyClock(100),
  greetingTimeoutMs: 600_000,
  replyTimeoutMs: 600_000,
  sessionTimeoutMs: 3_600_000,
  deadlineMs: 3_600_000,
}

function hastyClock(speed: number): Clock {
  return {
    now: systemClock.now,
    monotonicNow: () => systemClock.monotonicNow() * speed,
    after: (delayMs, callback) => systemClock.after(delayMs / speed, callback),
  }
}

function oneOption({ dns, resolver }: RealServers, key: string, value: string): EngineOptions {
  switch (key) {
    case 'helo':
      return { helo: value }
    case 'mail-from':
      return { mailFrom: value }
    case 'source-address':
      return { sourceAddress: value }
    case 'starttls':
      return { startTls: value as 'always' | 'never' | 'demanded' }
    case 'greeting-timeout':
      return { greetingTimeoutMs: Number(value) }
    case 'reply-timeout':
      return { replyTimeoutMs: Number(value) }
    case 'deadline':
      return { deadlineMs: Number(value) }
    case 'sessions-per-operator':
      return { sessionsPerOperator: Number(value) }
    case 'recipients-per-session':
      return { recipientsPerSession: Number(value) }
    case 'greylist-delay':
      return { greylistDelayMs: Number(value) * 1_000 }
    case 'hasty':
      return { ...HASTY, resolver }
    case 'no-resolver':
      return { dns: [dns.authority] }
    default:
      throw new Error(`The tables know no option "${key}".`)
  }
}
