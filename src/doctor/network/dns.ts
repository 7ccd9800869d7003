import type { DnsAnswer, DnsFault, RecordType, Resolver } from '../../engine/dns/resolver.ts'
import {
  type CheckFailure,
  type CheckResult,
  evaluateCheckAnswers,
  randomAbsentName,
} from '../../engine/dns/resolver-check.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Random } from '../../platform/random.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'

/** One DNS server, asked alone. */
export type DnsServer = { readonly name: string; readonly resolver: Resolver }

export type DnsCheckDeps = {
  readonly dnsServers: readonly DnsServer[]
  /** Names that must have MX records; empty: a server that lies is only a warning. */
  readonly dnsCheckNames: readonly string[]
  readonly clock: Clock
  readonly random: Random
}

/** Whether each DNS server answers for these names, how fast, and whether it tells the truth. */
export async function dnsFindings(
  deps: DnsCheckDeps,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Finding[]> {
  const healths = await Promise.all(
    deps.dnsServers.map(server => checkServer(server, deps, names, signal)),
  )
  const anyAnswers = healths.some(({ answered }) => answered > 0)
  return healths.map(health => toFinding(health, anyAnswers))
}

type Health = {
  readonly server: string
  readonly asked: number
  readonly answered: number
  readonly medianMs: number
  readonly faults: readonly DnsFault[]
  readonly check: CheckResult
  readonly isChecked: boolean
}

async function checkServer(
  { name, resolver }: DnsServer,
  { clock, random, dnsCheckNames }: DnsCheckDeps,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Health> {
  const ask = async (question: string, type: RecordType) => {
    const startedAt = clock.monotonicNow()
    const answer: DnsAnswer<RecordType> = await resolver.resolve(question, type, signal)
    return { answer, tookMs: clock.monotonicNow() - startedAt }
  }
  const [invented, known, others] = await Promise.all([
    ask(randomAbsentName(random), 'A'),
    Promise.all(dnsCheckNames.map(name => ask(name, 'MX'))),
    Promise.all(names.map(name => ask(name, 'A'))),
  ])
  const answers = [invented, ...known, ...others]
  const answered = answers.filter(({ answer }) => isAnswer(answer))
  const times = answered.map(({ tookMs }) => tookMs).sort((a, b) => a - b)
  const knownAnswers = known.map(({ answer }, i) => [dnsCheckNames[i] ?? '', answer] as const)
  return {
    server: name,
    asked: answers.length,
    answered: answered.length,
    medianMs: Math.round(times[Math.floor(times.length / 2)] ?? 0),
    faults: answers.flatMap(({ answer }) => ('fault' in answer ? [answer.fault] : [])),
    check: evaluateCheckAnswers(invented.answer, knownAnswers),
    isChecked: dnsCheckNames.length > 0,
  }
}

/** A verification waits for two or three answers, one after another. */
const SLOW_MS = 500

const isAnswer = (answer: DnsAnswer<RecordType>) =>
  'records' in answer || answer.fault === 'no-name' || answer.fault === 'no-data'

function toFinding(health: Health, anyAnswers: boolean): Finding {
  const { server, asked, answered, medianMs } = health
  const counted = `${server} answered ${answered} of ${asked} questions`
  if (answered === 0) return dead(health, anyAnswers)
  const { check } = health
  if (typeof check !== 'string') {
    const toVerdict = health.isChecked ? fail : warn
    return toVerdict(`${server} does not tell the truth: ${check.detail}`, TODO[check.kind])
  }
  if (answered < asked) {
    return warn(
      `${counted}; ${wordsOf(health.faults)}`,
      'Run this again; if it stays so, name another server with --dns.',
    )
  }
  const says = `${counted}, in ${medianMs} ms at the median`
  return medianMs > SLOW_MS
    ? warn(says, 'That is slow. Run a resolver near, such as unbound, and name it with --dns.')
    : ok(says)
}

const TODO = {
  missing:
    'A captive portal, filter, VPN or sandbox answers in place of the DNS. Name another server with --dns, or where this is a network of your own, names that exist in it with --dns-check-names.',
  invented:
    'Such a server hides domains that do not exist, and makes blocklists list everybody. Name another with --dns.',
} as const satisfies Record<CheckFailure['kind'], string>

function dead({ server, faults }: Health, anyAnswers: boolean): Finding {
  const says = `${server} answers nothing: ${wordsOf(faults)}`
  return anyAnswers
    ? warn(says, 'Take it off the list of servers (--dns, or /etc/resolv.conf): it costs time.')
    : fail(says, 'Name a working DNS server with --dns, or mend /etc/resolv.conf.')
}

const wordsOf = (faults: readonly DnsFault[]) =>
  faults.includes('timeout') ? 'it keeps silent' : 'it fails, or refuses to answer'
