import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { classOf, type EngineOptions, type Result } from '../../src/index.ts'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import type { RealServers } from '../support/real-servers.ts'

const FIXTURES = join(import.meta.dirname, '../../fixtures/real')

/** A row of fixtures/real: input, options, and the expected verdict and evidence. */
export type Case = {
  readonly name: string
  /**
   * One or several addresses with the same expected findings; `u{1..9}@a.test` is nine addresses.
   */
  readonly addresses: readonly string[]
  /** Engine options, spelled as on the command line; `list` verifies a list, with retries. */
  readonly options: readonly string[]
  readonly expected: Findings
}

/** The findings of a result; `-` for none. */
export type Findings = {
  readonly class: string
  readonly reason: string
  readonly stage: string
  readonly code: string
  readonly enhanced: string
  /** The exchanger, with `+tls` if TLS was on; `*` if it is random. */
  readonly host: string
}

/** Reads the rows of a table; a missing table has none. */
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

/** Expands `u{1..3}@a.test` to u1, u2 and u3. */
function spelledOut(address: string): string[] {
  const [all, first, last] = /\{(\d+)\.\.(\d+)\}/.exec(address) ?? []
  if (all === undefined) return [address]
  const count = Number(last) - Number(first) + 1
  return Array.from({ length: count }, (_, n) => address.replace(all, String(Number(first) + n)))
}

/** Verifies a row with a separate engine, whose caches are empty. */
export async function ask(services: RealServers, { addresses, options }: Case): Promise<Result[]> {
  const isList = options.includes('list')
  const engine = services.engine(engineOptions(services, options))
  if (!isList) return Promise.all(addresses.map(address => engine.verify(address, DIALOGUE)))
  const results: Result[] = []
  for await (const result of engine.verifyMany(addresses)) results.push(result)
  return results
}

const DIALOGUE = { include: ['dialogue'] } as const

/** Returns the findings to compare with the row, with `*` where the row has it. */
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

/** Formats the dialogue for the message of a failed row. */
export const dialogueOf = ({ email, evidence }: Result) =>
  [email, JSON.stringify(evidence.answer), ...(evidence.dialogue ?? [])].join('\n')

function engineOptions(services: RealServers, options: readonly string[]): EngineOptions {
  const given = options.filter(option => option !== 'list').map(option => option.split('='))
  return Object.assign(
    {},
    ...given.map(([key = '', value = '']) => oneOption(services, key, value)),
  )
}

/**
 * A clock a hundred times as fast: a wait of five minutes takes three seconds. Timeouts of servers
 * are extended.
 */
const FAST_CLOCK: EngineOptions = {
  clock: fastClock(100),
  greetingTimeoutMs: 600_000,
  replyTimeoutMs: 600_000,
  sessionTimeoutMs: 3_600_000,
  deadlineMs: 3_600_000,
}

function fastClock(speed: number): Clock {
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
      return { ...FAST_CLOCK, resolver }
    case 'no-resolver':
      return { dns: [dns.authority] }
    default:
      throw new Error(`The tables know no option "${key}".`)
  }
}
