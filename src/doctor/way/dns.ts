import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { DnsAnswer, DnsFault, Resolver } from '../../dns/resolver.ts'
import { type Finding, fail, ok, warn } from '../finding.ts'

/** One DNS server, asked alone. */
export type DnsServer = { readonly name: string; readonly resolver: Resolver }

export type DnsWorld = {
  readonly dnsServers: readonly DnsServer[]
  readonly clock: Clock
  readonly random: Random
}

/** Whether each DNS server answers for these names, how fast, and whether it is honest about a name that nobody has. */
export async function dnsFindings(
  world: DnsWorld,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Finding[]> {
  const healths = await Promise.all(
    world.dnsServers.map(server => examine(server, world, names, signal)),
  )
  const somebodyAnswers = healths.some(({ answered }) => answered > 0)
  return healths.map(health => judged(health, somebodyAnswers))
}

type Health = {
  readonly server: string
  readonly asked: number
  readonly answered: number
  readonly medianMs: number
  readonly faults: readonly DnsFault[]
  /** It gave a name that nobody has an address. */
  readonly invents: boolean
}

async function examine(
  { name, resolver }: DnsServer,
  { clock, random }: DnsWorld,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Health> {
  const nobodys = `${random.token(NOBODYS_LENGTH)}.com`
  const questions = [nobodys, ...names]
  const answers = await Promise.all(
    questions.map(async question => {
      const begunAt = clock.ticks()
      const answer = await resolver.resolve(question, 'A', signal)
      return { answer, tookMs: clock.ticks() - begunAt }
    }),
  )
  const answered = answers.filter(({ answer }) => isAnswer(answer))
  const times = answered.map(({ tookMs }) => tookMs).sort((a, b) => a - b)
  const first = answers[0]?.answer
  return {
    server: name,
    asked: answers.length,
    answered: answered.length,
    medianMs: Math.round(times[Math.floor(times.length / 2)] ?? 0),
    faults: answers.flatMap(({ answer }) => ('fault' in answer ? [answer.fault] : [])),
    invents: first !== undefined && 'records' in first,
  }
}

/** 36^20 names: nobody has registered this one. */
const NOBODYS_LENGTH = 20
/** A verification waits for two or three answers, one after another. */
const SLOW_MS = 500

const isAnswer = (answer: DnsAnswer<'A'>) =>
  'records' in answer || answer.fault === 'no-name' || answer.fault === 'no-data'

function judged(health: Health, somebodyAnswers: boolean): Finding {
  const { server, asked, answered, medianMs } = health
  const counted = `${server} answered ${answered} of ${asked} questions`
  if (answered === 0) return dead(health, somebodyAnswers)
  if (health.invents) {
    return warn(
      `${server} invents answers: it gives an address to a name that nobody has`,
      'Such a resolver hides domains that do not exist, and makes blocklists list everybody. Name another with --dns.',
    )
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

function dead({ server, faults }: Health, somebodyAnswers: boolean): Finding {
  const says = `${server} answers nothing: ${wordsOf(faults)}`
  return somebodyAnswers
    ? warn(says, 'Take it off the list of servers (--dns, or /etc/resolv.conf): it costs time.')
    : fail(says, 'Name a working DNS server with --dns, or mend /etc/resolv.conf.')
}

const wordsOf = (faults: readonly DnsFault[]) =>
  faults.includes('timeout') ? 'it keeps silent' : 'it fails, or refuses to answer'
