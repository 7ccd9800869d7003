import type { DnsAnswer, DnsFault, RecordType, Resolver } from '../../engine/dns/resolver.ts'
import {
  type CheckResult,
  evaluateCheckAnswers,
  type FalseAnswers,
  randomAbsentName,
} from '../../engine/dns/resolver-check.ts'
import type { Clock } from '../../platform/clock.ts'
import type { Random } from '../../platform/random.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'

/** A DNS server with a resolver that queries only this server. */
export type DnsServer = { readonly name: string; readonly resolver: Resolver }

type DnsCheckDeps = {
  readonly dnsServers: readonly DnsServer[]
  /** Domains that must have MX records; empty: a lying server is only a warning. */
  readonly dnsCheckNames: readonly string[]
  readonly clock: Clock
  readonly random: Random
}

/** Checks that each DNS server resolves these names, how fast, and that its answers are correct. */
export async function dnsFindings(
  deps: DnsCheckDeps,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Finding[]> {
  const checks = await Promise.all(
    deps.dnsServers.map(server => checkServer(server, deps, names, signal)),
  )
  const anyAnswers = checks.some(({ answered }) => answered > 0)
  return checks.map(one => toFinding(one, anyAnswers))
}

type ServerCheck = {
  readonly server: string
  readonly queried: number
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
): Promise<ServerCheck> {
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
    queried: answers.length,
    answered: answered.length,
    medianMs: Math.round(times[Math.floor(times.length / 2)] ?? 0),
    faults: answers.flatMap(({ answer }) => ('fault' in answer ? [answer.fault] : [])),
    check: evaluateCheckAnswers(invented.answer, knownAnswers),
    isChecked: dnsCheckNames.length > 0,
  }
}

/** A verification waits for two or three lookups in sequence. */
const SLOW_MS = 500

const isAnswer = (answer: DnsAnswer<RecordType>) =>
  'records' in answer || answer.fault === 'no-name' || answer.fault === 'no-data'

function toFinding(result: ServerCheck, anyAnswers: boolean): Finding {
  const { server, queried, answered, medianMs } = result
  const count = `${server} answered ${answered} of ${queried} queries`
  if (answered === 0) return unresponsive(result, anyAnswers)
  const { check } = result
  if (typeof check !== 'string') {
    const severity = result.isChecked ? fail : warn
    return severity(`${server} returns wrong answers: ${check.detail}`, TODO[check.kind])
  }
  if (answered < queried) {
    return warn(
      `${count}; ${describeFaults(result.faults)}`,
      'Run this again. If it keeps failing, set another server with --dns.',
    )
  }
  const says = `${count}, median ${medianMs} ms`
  return medianMs > SLOW_MS
    ? warn(says, 'This is slow. Run a local resolver, such as unbound, and set it with --dns.')
    : ok(says)
}

const TODO = {
  missing:
    'A captive portal, filter, VPN or sandbox intercepts DNS. Set another server with --dns. In a private network, set names that exist in it with --dns-check-names.',
  invented:
    'This server invents addresses for domains that do not exist, which makes blocklists report every address as listed. Set another server with --dns.',
} as const satisfies Record<FalseAnswers['kind'], string>

function unresponsive({ server, faults }: ServerCheck, anyAnswers: boolean): Finding {
  const says = `${server} does not resolve names: ${describeFaults(faults)}`
  return anyAnswers
    ? warn(says, 'Remove it from --dns or /etc/resolv.conf: it delays lookups.')
    : fail(says, 'Set a working DNS server with --dns, or fix /etc/resolv.conf.')
}

const describeFaults = (faults: readonly DnsFault[]) =>
  faults.includes('timeout') ? 'queries time out' : 'queries fail or are refused'
