import type { Resolver } from '../../src/engine/dns/resolver.ts'
import type { Dial } from '../../src/engine/smtp/dial.ts'
import { createEngine, type EngineOptions, type Result } from '../../src/index.ts'
import type { Log } from '../../src/platform/log.ts'
import { fakeClock, letTimePass } from './clock.ts'
import { type MxScript, scriptedMx } from './mx.ts'
import { countedRandom } from './random.ts'
import { knows, recipientsOf } from './recipients.ts'
import { type ZoneEntry, zone } from './zone.ts'

export { isRandomRecipient, knows, toRecipients } from './recipients.ts'

type TestEngineOptions = {
  /** Replies of every exchanger; by default it knows `ann`, `bob` and `info`. */
  readonly script?: MxScript | NonNullable<MxScript['answer']>
  readonly zone?: Readonly<Record<string, ZoneEntry>>
  readonly engine?: EngineOptions
  /** False if the promises also wait for a database or files. */
  readonly skipsTime?: boolean
  /** Wrap the default dependencies, which they get as arguments. */
  readonly resolver?: (zone: Resolver, clock: ReturnType<typeof fakeClock>) => Resolver
  readonly dial?: (mx: Dial, clock: ReturnType<typeof fakeClock>) => Dial
}

/** Creates an engine with a fake DNS, mail server and clock: no sockets, no waiting. */
export function createTestEngine({
  script = knows('ann', 'bob', 'info'),
  resolver = zone => zone,
  dial = mx => mx,
  skipsTime = true,
  ...given
}: TestEngineOptions = {}) {
  const clock = fakeClock()
  const names = zone({ ...mail('a.test', '192.0.2.1'), ...given.zone })
  const mx = scriptedMx(script)
  const loggedErrors: string[] = []
  const engine = createEngine({
    clock,
    random: countedRandom(),
    resolver: resolver(names, clock),
    dial: dial(mx, clock),
    log: recordErrors(loggedErrors),
    helo: 'probe.test',
    allowRanges: ['192.0.2.0/24'],
    specialDomains: true,
    sessionsPerSecond: 1_000,
    ...given.engine,
  })
  /** Advances the clock until the promise settles, by at most a day. */
  async function settled<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false
    const settle = () => {
      isSettled = true
    }
    promise.then(settle, settle)
    await letTimePass(clock, () => isSettled, { stepMs: STEP_MS, maxMs: DAY_MS, skips: skipsTime })
    return promise
  }
  return {
    engine,
    clock,
    zone: names,
    mx,
    loggedErrors,
    settled,
    verify: (...args: Parameters<typeof engine.verify>) => settled(engine.verify(...args)),
    reason: async (...args: Parameters<typeof engine.verify>) =>
      (await settled(engine.verify(...args))).verdict.reason,
    many: (...args: Parameters<typeof engine.verifyMany>) =>
      settled(collect(engine.verifyMany(...args))),
    recipients: () => recipientsOf(mx.lines()),
  }
}

async function collect(results: AsyncIterable<Result>): Promise<Result[]> {
  const all: Result[] = []
  for await (const result of results) all.push(result)
  return all
}

/** A domain with one exchanger named `mx.` plus its name. */
export const mail = (domain: string, ip: string): Record<string, ZoneEntry> => ({
  [domain]: { MX: [[10, `mx.${domain}`]] },
  [`mx.${domain}`]: { A: [ip] },
})

export const reasonsOf = (results: readonly Result[]) =>
  results.map(({ email, verdict }) => `${email} ${verdict.reason}`).toSorted()

const STEP_MS = 100
const DAY_MS = 86_400_000

function recordErrors(loggedErrors: string[]): Log {
  const note = (message: string, fields?: object) =>
    void loggedErrors.push(`${message} ${JSON.stringify(fields ?? {})}`)
  return { debug() {}, info() {}, warn: note, error: note }
}
