import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { isFault, parseAddress } from '../../../src/engine/address/address.ts'
import type { Resolver } from '../../../src/engine/dns/resolver.ts'
import { EgressProber } from '../../../src/engine/probe/egress-prober.ts'
import type { ProbeTarget } from '../../../src/engine/probe/mx-groups.ts'
import type { ProbeResult } from '../../../src/engine/probe/probe-outcome.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { Semaphore } from '../../../src/platform/semaphore.ts'
import { ROW, TIMEOUTS } from '../../support/prober.ts'
import { runs } from '../../support/property.ts'
import { countedRandom } from '../../support/random.ts'
import { isRandomRecipient, recipientOf } from '../../support/recipients.ts'
import { Dice, HostileServer, steppedClock, type Trace } from './hostile-server.ts'

/** Seeds from 1 on, the same in every run; a partial run uses the first ones. */
const STREAMS = runs(100_000, 40)
/** Concurrent runs, which share the turns of the event loop. */
const TOGETHER = 16
/** The most timers of one run; more means that it does not end. */
const STEPS_MAX = 3_000

const LOCALS = ['ann@a', 'bob@a', 'jörg@a', 'zoe@z', '"q r"@z']

/** The first MX host has one address, the second has two. */
const NAMES: Resolver = {
  resolve: async (name, type) => {
    if (type !== 'A') return { fault: 'no-data' }
    const records = name.startsWith('mx1') ? ['192.0.2.1'] : ['192.0.2.2', '192.0.2.3']
    return { records: records as never[] }
  },
}

/** A prober and its clock for successive runs, each with its own operator, hosts and domains. */
function place() {
  const clock = steppedClock()
  let walk = newWalk(0)
  const dial = {
    connect: async () => {
      if (walk.dice.entropy(0.05)) throw new Error('ECONNREFUSED')
      const server = new HostileServer(new Dice(walk.dice.below(2 ** 32)), clock)
      walk.traces.push(server)
      return server.asSocket()
    },
    secure: async () => {
      if (walk.dice.entropy(0.3)) throw new Error('handshake failure')
      const server = walk.traces.at(-1) as HostileServer
      server.beginTls()
      return server.asSocket()
    },
  }
  const world = {
    resolver: NAMES,
    clock,
    random: countedRandom(),
    log: silentLog,
    egress: { name: 'default', helo: 'probe.test', mailFrom: '', dial },
    isPublic: () => true,
    smtpPort: 25,
    timeouts: TIMEOUTS,
    connectionSlots: new Semaphore(200),
    get startTls() {
      return walk.startTls
    },
  }
  const prober = new EgressProber(world, () => walk.row)
  return {
    clock,
    /** Starts the run of a seed; the previous one must have ended. */
    begin(seed: number) {
      walk = newWalk(seed)
      const { dice, told, questions } = walk
      const mine = walk
      const abort = new AbortController()
      if (dice.entropy(0.05)) clock.after(dice.below(60_000), () => abort.abort())
      prober
        .probe(
          `op${seed}.test`,
          questions,
          {
            probed: (question, probed) => told.push({ question, probed }),
            later: () => {
              mine.failed = new Error('a target is to be probed later')
            },
          },
          {
            signal: abort.signal,
            drain: abort.signal,
            single: dice.entropy(0.4),
            urgent: false,
            timeoutMs: 2_000,
            dialogue: dice.entropy(0.1),
            listener: null,
          },
        )
        .catch(error => {
          mine.failed = error
        })
        .then(() => prober.idle())
        .finally(() => {
          mine.finished = true
        })
      return mine
    },
  }
}

type Walk = ReturnType<typeof newWalk>

/** A few targets, and a server for each connection that they cause. */
function newWalk(seed: number) {
  const dice = new Dice(seed)
  const route = {
    kind: 'mx',
    hosts: [
      { preference: 10, host: `mx1.${seed}.test` },
      { preference: 20, host: `mx2.${seed}.test` },
    ],
  } as const
  const known = dice.entropy(0.1) ? dice.entropy(0.5) : null
  return {
    seed,
    dice,
    startTls: dice.one(['demanded', 'demanded', 'always', 'never'] as const),
    row: {
      ...ROW,
      recipientsPerTransaction: dice.one([1, 2, 20]),
      recipientsPerSession: dice.one([1, 3, 20]),
      unknownStreakMax: dice.one([1, 3, 20]),
    },
    questions: LOCALS.filter(() => dice.entropy(0.5)).map(start => {
      const address = parseAddress(`${start}${seed}.test`)
      if (isFault(address)) throw new Error(start)
      const operator = { name: `op${seed}.test`, title: '', truth: 'tells' } as const
      const exchangers: ProbeTarget['exchangers'] = [{ operator, route, catchAll: known }]
      return { address, exchangers, accepted: null }
    }),
    traces: [] as HostileServer[],
    told: [] as { question: ProbeTarget; probed: ProbeResult }[],
    finished: false,
    failed: null as unknown,
    steps: 0,
  }
}

/**
 * The replies of a trace, parsed independently: the n-th belongs to the n-th command, the greeting is
 * number 0. They end at the first byte that is not SMTP and at a reply before its command.
 */
function repliesOf({ said, lines }: Trace): number[] {
  const codes: number[] = []
  const tlsAt = said.findIndex(({ tls }) => tls)
  if (tlsAt >= 0) {
    // Clear text after the reply to STARTTLS is discarded, because it is not protected.
    const replies = lines.slice(0, said[tlsAt]?.heard).lastIndexOf('STARTTLS') + 2
    readReplies(said.slice(0, tlsAt), replies, codes)
    if (codes.length < replies) return codes
  }
  readReplies(said.slice(tlsAt + 1), Number.POSITIVE_INFINITY, codes)
  return codes
}

function readReplies(said: Trace['said'], max: number, codes: number[]): void {
  let text = ''
  for (const part of said) {
    text += part.text
    for (let end = text.indexOf('\n'); end >= 0 && codes.length < max; end = text.indexOf('\n')) {
      const line = text.slice(0, end).replace(/\r$/, '')
      text = text.slice(end + 1)
      if (!/^[2-5][0-9]{2}([ -].*)?$/s.test(line)) return
      if (line[3] === '-') continue
      if (codes.length > part.heard) return
      codes.push(Number(line.slice(0, 3)))
    }
  }
}

/** Whether a server accepted this recipient. */
const took = (traces: readonly Trace[], isMeant: (recipient: string) => boolean) =>
  traces.some(trace => {
    const codes = repliesOf(trace)
    return trace.lines.some((line, i) => {
      const code = codes[i + 1] ?? 0
      return line.startsWith('RCPT') && isMeant(recipientOf(line)) && code >= 250 && code <= 252
    })
  })

const ALLOWED =
  /^(?:EHLO probe\.test|HELO probe\.test|STARTTLS|MAIL FROM:<>(?: SMTPUTF8)?|RCPT TO:<[^\x00-\x1f\x7f]+>|RSET|QUIT)$/

/** Returns the error of a finished run, or null. */
function faultOf({ failed, questions, told, traces }: Walk): string | null {
  if (failed !== null) return `it failed: ${failed}`
  if (told.length !== questions.length)
    return `${told.length} answers to ${questions.length} questions`
  if (new Set(told.map(({ question }) => question)).size !== told.length)
    return 'a question was answered twice'
  for (const { question, probed } of told) {
    const { answer, catchAll } = probed
    const { local, domain } = question.address
    const wire = Buffer.from(`${local}@${domain.ascii}`).toString('latin1')
    if (answer.kind === 'accepted' && answer.why !== 'restricted') {
      if (!took(traces, recipient => recipient === wire)) return `${wire} was not accepted`
    }
    if (catchAll === true && question.exchangers[0].catchAll === null) {
      const isHere = (recipient: string) =>
        isRandomRecipient(recipient) && recipient.endsWith(`@${domain.ascii}`)
      if (!took(traces, isHere)) return `${domain.ascii} does not take everything`
    }
  }
  for (const trace of traces) {
    if (!trace.destroyed) return 'a connection was left open'
    const odd = trace.lines.find(line => !ALLOWED.test(line))
    if (odd !== undefined) return `odd line: ${JSON.stringify(odd)}`
  }
  return null
}

describe('hostile reply streams', () => {
  test('cause no crash and no hang, and give each target one answer and no false acceptance', async () => {
    const unhandled: unknown[] = []
    const note = (error: unknown) => unhandled.push(error)
    process.on('unhandledRejection', note)
    const count: Record<string, number> = {}
    const connectionSlots = Array.from({ length: TOGETHER }, place)
    let streams = 0
    for (let seed = 1; streams < STREAMS; seed += TOGETHER) {
      const walks = connectionSlots.map((place, i) => ({ place, walk: place.begin(seed + i) }))
      for (let open = walks; open.length > 0; open = open.filter(({ walk }) => !walk.finished)) {
        await setImmediate()
        for (const { place, walk } of open) {
          if (walk.finished) continue
          if (!place.clock.step() || ++walk.steps > STEPS_MAX) {
            throw new Error(`The walk of seed ${walk.seed} does not end.`)
          }
        }
      }
      for (const { walk } of walks) {
        const fault = faultOf(walk)
        if (fault !== null) throw new Error(`Seed ${walk.seed}: ${fault}`)
        streams += walk.traces.length
        for (const { probed } of walk.told) {
          count[probed.answer.kind] = (count[probed.answer.kind] ?? 0) + 1
        }
      }
    }
    // Remaining output of servers, and our own timers if one is left.
    for (const { clock } of connectionSlots) while (clock.step());
    await setImmediate()
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
    // The servers must not be so hostile that nothing is tested.
    for (const kind of ['accepted', 'rejected', 'blocked', 'deferred', 'no-response']) {
      expect(count[kind]).toBeGreaterThan(STREAMS / 100)
    }
  }, 600_000)
})
