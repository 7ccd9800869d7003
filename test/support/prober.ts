import type { Duplex } from 'node:stream'
import { isFault, parseAddress } from '../../src/engine/address/address.ts'
import { cachedResolver } from '../../src/engine/dns/cached-resolver.ts'
import type { MxOperator } from '../../src/engine/dns/operators.ts'
import type { ProbeDeps } from '../../src/engine/probe/egress.ts'
import { EgressProber } from '../../src/engine/probe/egress-prober.ts'
import type { ProbeTarget } from '../../src/engine/probe/mx-groups.ts'
import type { ProbeOptions, ProbeSink } from '../../src/engine/probe/probe-options.ts'
import type { ProbeResult } from '../../src/engine/probe/probe-outcome.ts'
import type { RateLimits } from '../../src/engine/rate-control/limit-table.ts'
import type { SharedRateState } from '../../src/engine/rate-control/shared-state.ts'
import type { RecipientOutcome } from '../../src/engine/smtp/classify-reply.ts'
import type { Dial, Target } from '../../src/engine/smtp/dial.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { Semaphore } from '../../src/platform/semaphore.ts'
import { detectSuspensions } from '../../src/platform/suspension.ts'
import { fakeClock, letTimePass } from './clock.ts'
import { type MxScript, scriptedMx } from './mx.ts'
import { countedRandom } from './random.ts'
import { recipientsOf } from './recipients.ts'
import { type ZoneEntry, zone } from './zone.ts'

export const ROW: RateLimits = {
  sessionsMax: 5,
  recipientsPerSession: 20,
  recipientsPerTransaction: 20,
  sessionsPerSecond: 10,
  unknownStreakMax: 20,
}

export const LIMITS = { connectMs: 10_000, greetingMs: 30_000, replyMs: 20_000, sessionMs: 60_000 }
export const TIMEOUTS = { awaited: LIMITS, list: LIMITS }

/** The outcome of a server that has the client on a blocklist. */
export const REFUSAL = {
  ...({ kind: 'blocked', why: 'blocklist', stage: 'greeting' } as const),
  reply: { code: 554, enhanced: null, text: 'listed' },
} satisfies RecipientOutcome

/** How a run goes, and what else its sink takes. */
type RunOptions = Partial<ProbeOptions> &
  Partial<Pick<ProbeSink<ProbeTarget, ProbeResult>, 'returned'>>

export const OPERATOR: MxOperator = { name: 'mx.test', title: 'mx.test', truth: 'tells' }

/** An EHLO reply without PIPELINING. */
export const LOCK_STEP = (line: string) => (line.startsWith('EHLO') ? '250 mx.test' : undefined)
/** The two modes of a session. */
export const MANNERS = [
  ['pipelined', undefined],
  ['in lock-step', LOCK_STEP],
] as const

type TestProberOptions = {
  readonly zone?: Readonly<Record<string, ZoneEntry>>
  readonly row?: Partial<RateLimits>
  readonly world?: Partial<ProbeDeps>
  /** Opens the rate states that other processes share; by default there are none. */
  readonly share?: (clock: Clock) => SharedRateState
  /** Wraps the default dial, which it gets as its argument. */
  readonly dial?: (near: Dial) => Dial
}

/** Creates a prober whose exchangers play `script`; by default `mx.test` is at 192.0.2.1. */
export function createTestProber(
  script: MxScript | NonNullable<MxScript['answer']>,
  options: TestProberOptions = {},
) {
  const clock = fakeClock()
  const names = zone({ 'mx.test': { A: ['192.0.2.1'] }, ...options.zone })
  const mx = scriptedMx(script)
  /** The text of each write; `writes[i]` belongs to the i-th connection. */
  const writes: string[][] = []
  const near: Dial = {
    connect: async (to: Target, signal: AbortSignal) =>
      recorded(await mx.connect(to, signal), writes),
    secure: mx.secure,
  }
  const world: ProbeDeps = {
    resolver: cachedResolver(names, { clock }),
    clock: detectSuspensions(clock),
    random: countedRandom(),
    log: silentLog,
    egress: {
      name: 'default',
      helo: 'probe.test',
      mailFrom: '',
      dial: options.dial?.(near) ?? near,
    },
    isPublic: () => true,
    smtpPort: 25,
    timeouts: TIMEOUTS,
    startTls: 'demanded',
    connectionSlots: new Semaphore(200),
    ...options.world,
  }
  const share = options.share?.(clock) ?? null
  const prober = new EgressProber(world, () => ({ ...ROW, ...options.row }), undefined, share)

  const begin = (
    questions: readonly (ProbeTarget | string)[],
    { returned, ...how }: RunOptions = {},
  ) => {
    const abort = new AbortController()
    const drain = new AbortController()
    const told: { email: string; probed: ProbeResult }[] = []
    const probeRun = {
      told,
      /** Every target has an outcome. */
      answered: false,
      /** Every target has an outcome, and every connection is closed. */
      finished: false,
      abort: () => {
        abort.abort()
        drain.abort()
      },
      drain: () => drain.abort(),
      /** The outcomes as `email kind/why`, in order of arrival. */
      answers: () => told.map(({ email, probed }) => `${email} ${nameOf(probed)}`),
      /**
       * Advances the clock until the run ends, by at most an hour, and not at all if not needed.
       */
      async end() {
        await letTimePass(clock, () => probeRun.finished, { stepMs: STEP_MS, maxMs: HOUR_MS })
        await promise
        return probeRun
      },
      /** Returns the only result; throws if there are several. */
      only: () => {
        const [first, ...others] = told
        if (first === undefined || others.length > 0) throw new Error(`${told.length} answers`)
        return first.probed
      },
    }
    const promise = prober
      .probe(
        OPERATOR.name,
        questions.map(one => (typeof one === 'string' ? ask(one) : one)),
        {
          probed: (question, probed) => told.push({ email: question.address.text, probed }),
          later: ({ address }) => {
            throw new Error(`${address.text} is to be probed later`)
          },
          returned,
        },
        {
          signal: abort.signal,
          drain: how.signal ?? drain.signal,
          single: false,
          urgent: false,
          timeoutMs: 2_000,
          dialogue: false,
          listener: null,
          ...how,
        },
      )
      .then(() => {
        probeRun.answered = true
        return prober.idle()
      })
      .finally(() => {
        probeRun.finished = true
      })
    promise.catch(() => {})
    return probeRun
  }
  return {
    clock,
    zone: names,
    mx,
    writes,
    world,
    prober,
    begin,
    run: (...given: Parameters<typeof begin>) => begin(...given).end(),
    single: (email: string | ProbeTarget, how: RunOptions = {}) =>
      begin([email], { single: true, timeoutMs: 10_000, ...how }).end(),
    /** The lines of each connection without EHLO and QUIT. */
    said: () => mx.sessions.map(({ lines }) => lines.filter(line => !/^(EHLO|QUIT)/.test(line))),
    recipients: () => recipientsOf(mx.lines()),
  }
}

const STEP_MS = 200
const HOUR_MS = 3_600_000

/** A target for `email`, whose domain has these exchangers in order of preference. */
export function ask(
  email: string,
  hosts: readonly string[] = ['mx.test'],
  catchAll: boolean | null = null,
): ProbeTarget {
  const address = parseAddress(email)
  if (isFault(address)) throw new Error(`${email} is no address`)
  const records = hosts.map((host, i) => ({ preference: 10 * (i + 1), host }))
  const route = { kind: 'mx', hosts: records } as const
  return { address, exchangers: [{ operator: OPERATOR, route, catchAll }], accepted: null }
}

export const nameOf = ({ answer }: ProbeResult) => `${answer.kind}/${answer.why}`

/** Returns `count` addresses of one domain: p00, p01 … */
export const people = (count: number, domain = 'a.test') =>
  Array.from({ length: count }, (_, i) => `p${String(i).padStart(2, '0')}@${domain}`)

export const sorted = (texts: readonly string[]) => [...texts].sort()

/** The expected `answers` if all have the same outcome. */
export const each = (emails: readonly string[], name: string) =>
  emails.map(email => `${email} ${name}`)

function recorded(socket: Duplex, writes: string[][]): Duplex {
  const ownWrites: string[] = []
  writes.push(ownWrites)
  const write = socket.write.bind(socket) as (chunk: string | Uint8Array) => boolean
  socket.write = ((chunk: string | Uint8Array) => {
    ownWrites.push(Buffer.from(chunk).toString())
    return write(chunk)
  }) as typeof socket.write
  return socket
}
