// Simulates a year of verifications with a hidden truth, and measures how well confidence matches
// it before and after feedback, and how often the interval of the projected bounce rate of a list
// contains the truth, through the same code as the service:
// node bench/calibration.ts --seeds 20 --pieces 5000 --truth random

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { openDatabase } from '../src/db/database.ts'
import { parseAddress } from '../src/engine/address/address.ts'
import { decide, getActionCase } from '../src/engine/verdict/action.ts'
import { toEvidence } from '../src/engine/verdict/judge.ts'
import { type Reason, VERDICT_BY_REASON } from '../src/engine/verdict/reason.ts'
import type { Result } from '../src/engine/verdict/verdict.ts'
import { countedReason } from '../src/feedback/adjust-result.ts'
import type { FeedbackInput } from '../src/feedback/feedback.ts'
import type { VerdictCount } from '../src/feedback/feedback-counts.ts'
import { FeedbackKnowledge } from '../src/feedback/knowledge.ts'
import { type BounceProjection, projectList, ResultCounter } from '../src/feedback/projection.ts'
import { recordFeedback } from '../src/feedback/record-feedback.ts'
import { buildReport } from '../src/feedback/report.ts'
import { type Clock, DAY, systemClock } from '../src/platform/clock.ts'
import { machine } from './engine/figures.ts'

const YEAR = 365 * DAY
const START = Date.parse('2026-01-01T00:00:00Z')
const { values } = parseArgs({
  options: {
    pieces: { type: 'string', default: '0,1000,5000,50000' },
    // Figures are means of this many simulations, with their standard deviation.
    seeds: { type: 'string', default: '20' },
    seed: { type: 'string', default: '31' },
    // `fixed`: every seed has the same shares. `random`: each seed draws its own.
    truth: { type: 'string', default: 'fixed' },
  },
})
const PIECES = values.pieces.split(',').map(Number)
const SEEDS = Array.from({ length: Number(values.seeds) }, (_, n) => Number(values.seed) + n)
/** The new addresses that measure a state have a seed of their own. */
const MEASURING = 1_000_000
/** New addresses that measure each state; they give no feedback. */
const MEASURED = 20_000
const BATCH = 500
const ACCOUNT = 'acc_bench'
const OWNER = { accountId: ACCOUNT, plan: null, source: 'bench' }

/** A generator of numbers from 0 to 1 with a fixed seed (mulberry32), so that runs are equal. */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A kind of address: how often it occurs, what ev says, and how often mail arrives. */
type Kind = {
  readonly share: number
  readonly reason: Reason
  readonly operator: string
  /** Probability that mail arrives, by the time of the year from 0 to 1. */
  readonly alive: (time: number) => number
  readonly domains: number
}

const always = (share: number) => () => share

/** The hidden truth: what ev cannot see. */
const KINDS: readonly Kind[] = [
  { share: 0.34, reason: 'accepted_email', operator: 'Google', alive: always(0.985), domains: 1 },
  { share: 0.14, reason: 'accepted_email', operator: 'Microsoft', alive: always(0.96), domains: 1 },
  // An operator that starts to accept everything and bounces later.
  {
    share: 0.08,
    reason: 'accepted_email',
    operator: 'Drifting',
    alive: time => 0.97 - 0.3 * time,
    domains: 1,
  },
  { share: 0.08, reason: 'accepted_email', operator: 'own', alive: always(0.9), domains: 300 },
  { share: 0.05, reason: 'role_account', operator: 'own', alive: always(0.93), domains: 300 },
  // Catch-all domains whose mail arrives, whose mail bounces, and a mixture.
  { share: 0.06, reason: 'catch_all', operator: 'own', alive: always(0.985), domains: 20 },
  { share: 0.04, reason: 'catch_all', operator: 'own', alive: always(0.25), domains: 20 },
  { share: 0.06, reason: 'catch_all', operator: 'Microsoft', alive: always(0.7), domains: 400 },
  { share: 0.04, reason: 'low_deliverability', operator: 'own', alive: always(0.6), domains: 100 },
  // Rejections that are wrong: servers that reject ev, not the recipient.
  { share: 0.08, reason: 'rejected_email', operator: 'Google', alive: always(0.005), domains: 1 },
  { share: 0.03, reason: 'rejected_email', operator: 'own', alive: always(0.12), domains: 100 },
]

/** Draws another hidden truth: shares, drifts and numbers of domains are random. */
function drawKinds(seed: number): readonly Kind[] {
  const random = createRandom(seed + 2 * MEASURING)
  const draw = (reason: Reason, operator: string, [low, high]: readonly [number, number]) => {
    const start = low + (high - low) * random()
    const drift = random() < 0.2 ? 0.4 * (random() - 0.5) : 0
    const alive = (time: number) => Math.min(0.999, Math.max(0.001, start + drift * time))
    return { share: random(), reason, operator, alive, domains: Math.ceil(300 * random() ** 2) }
  }
  const kinds = ['Google', 'Microsoft', 'Yahoo', 'own'].flatMap(operator => [
    draw('accepted_email', operator, [0.8, 1]),
    draw('role_account', operator, [0.8, 1]),
    draw('rejected_email', operator, [0, 0.1]),
    draw('low_deliverability', operator, [0.3, 0.9]),
    // Domains of one operator may differ.
    draw('catch_all', operator, [0.5, 1]),
    draw('catch_all', operator, [0, 1]),
  ])
  const sum = kinds.reduce((total, { share }) => total + share, 0)
  return kinds.map(kind => ({ ...kind, share: kind.share / sum }))
}

type Sample = { readonly result: Result; readonly isAlive: boolean }

function createWorld(seed: number, kinds: readonly Kind[]) {
  const random = createRandom(seed)
  let serial = 0
  return (at: number): Sample => {
    const kind = pick(random(), kinds)
    const place = kinds.indexOf(kind)
    const domain = `d${place}-${Math.floor(random() * kind.domains)}.example`
    const email = `user${seed}x${serial++}@${domain}`
    const { details, ...verdict } = VERDICT_BY_REASON[kind.reason]
    const smtpValid = details.smtpValid === true
    const operator = { name: kind.operator, known: true } as unknown
    const evidence = toEvidence({
      address: parseAddress(email),
      operator: operator as Result['evidence']['operator'],
    })
    return {
      isAlive: random() < kind.alive((at - START) / YEAR),
      result: {
        email,
        provider: domain,
        evidence,
        tookMs: 1,
        cached: false,
        checkedAt: at,
        verdict: { ...verdict, reason: kind.reason, details: { ...details, smtpValid } },
      },
    }
  }
}

function pick(number: number, kinds: readonly Kind[]): Kind {
  let rest = number
  for (const kind of kinds) {
    rest -= kind.share
    if (rest < 0) return kind
  }
  return kinds[0] as Kind
}

const reportOf = ({ result, isAlive }: Sample, occurredAt: number): FeedbackInput => ({
  address: result.email,
  ...(isAlive ? { kind: 'delivered' } : { kind: 'bounced', code: 550, enhancedCode: '5.1.1' }),
  occurredAt,
})

/** Runs a year with this many pieces of feedback, and measures new addresses at its end. */
async function simulate(pieces: number, seed: number) {
  const folder = mkdtempSync(join(tmpdir(), 'ev-calibration-'))
  let now = START
  // The monotonic time decides when a model is rebuilt.
  const clock: Clock = { ...systemClock, now: () => now, monotonicNow: () => now }
  const database = await openDatabase(`sqlite:${join(folder, 'ev.sqlite')}`, clock)
  try {
    const knowledge = new FeedbackKnowledge(database, {
      feedbackScope: 'account',
      calibration: true,
    })
    const kinds = values.truth === 'random' ? drawKinds(seed) : KINDS
    const nextOfYear = createWorld(seed, kinds)
    // Verdicts are stored from the first feedback on.
    const first = { address: 'first@start.example', kind: 'delivered' as const, occurredAt: START }
    if (pieces > 0) {
      await recordFeedback({ database }, { ...OWNER, items: [first] })
    }
    for (let done = 0; done < pieces; done += BATCH) {
      now = START + Math.floor((done / pieces) * YEAR)
      const samples = Array.from({ length: Math.min(BATCH, pieces - done) }, () => nextOfYear(now))
      const results = samples.map(({ result }) => result)
      await knowledge.adjust(database.db, ACCOUNT, results)
      now += 60_000
      const items = samples.map(sample => reportOf(sample, now))
      await recordFeedback({ database }, { ...OWNER, items })
      knowledge.refresh()
    }
    now = START + YEAR
    const next = createWorld(seed + MEASURING, kinds)
    const figures = await measure(knowledge, database, { at: now, next })
    return { figures, lists: await projectLists(knowledge, database, { at: now, next }) }
  } finally {
    await database.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Compares confidence with the truth of new addresses. */
async function measure(
  knowledge: FeedbackKnowledge,
  database: Awaited<ReturnType<typeof openDatabase>>,
  { at, next }: { readonly at: number; readonly next: (at: number) => Sample },
) {
  const samples = Array.from({ length: MEASURED }, () => next(at))
  const counts: VerdictCount[] = []
  let wrong = 0
  for (let from = 0; from < samples.length; from += BATCH) {
    const batch = samples.slice(from, from + BATCH)
    const adjusted = await knowledge.adjust(
      database.db,
      ACCOUNT,
      batch.map(({ result }) => result),
    )
    for (const [index, result] of adjusted.entries()) {
      const { verdict, evidence } = result
      const isCorrect = verdict.deliverable === batch[index]?.isAlive
      if (!isCorrect) wrong++
      counts.push({
        period: 0,
        reason: countedReason(result),
        operator: evidence.operator?.name ?? '',
        confidence: verdict.confidence,
        correct: Number(isCorrect),
        wrong: Number(!isCorrect),
      })
    }
  }
  const { total, operators } = buildReport(counts)
  // The error of each reason and operator, weighted by its share: it hides no opposite errors.
  const byOperator =
    operators.reduce((sum, row) => sum + row.count * Math.abs(row.predicted - row.observed), 0) /
    total.count
  const { calibrationError, brierScore } = total
  return [calibrationError, byOperator, brierScore, wrong / samples.length]
}

/** Lists whose bounces are projected, by their number of addresses. */
const LIST_SIZES = [500, 5_000]
const LISTS = 10

/** Whether an interval contained the truth, and its width. */
type Covered = { readonly covers: boolean; readonly width: number; readonly error: number }

type Covering = { readonly size: number; readonly before: Covered; readonly after: Covered }

/** Projects the bounces of lists of new addresses, and compares them with what mail to them does. */
async function projectLists(
  knowledge: FeedbackKnowledge,
  database: Awaited<ReturnType<typeof openDatabase>>,
  { at, next }: { readonly at: number; readonly next: (at: number) => Sample },
): Promise<Covering[]> {
  const lists: Covering[] = []
  for (const size of LIST_SIZES) {
    for (let n = 0; n < LISTS; n++) {
      const samples = Array.from({ length: size }, () => next(at))
      const results: Result[] = []
      for (let from = 0; from < size; from += BATCH) {
        const batch = samples.slice(from, from + BATCH).map(({ result }) => result)
        results.push(...(await knowledge.adjust(database.db, ACCOUNT, batch)))
      }
      const counter = new ResultCounter()
      const bounced = { all: 0, mailed: 0 }
      for (const [index, result] of results.entries()) {
        counter.add(getActionCase(result), result.evidence.operator?.name ?? null, 1)
        if (samples[index]?.isAlive) continue
        bounced.all++
        if (decide(result, 'balanced').action.startsWith('send')) bounced.mailed++
      }
      const model = await knowledge.getBounceModel(ACCOUNT)
      const { before, after } = projectList(counter.groups(), { policy: 'balanced', model })
      lists.push({
        size,
        before: compareWith(before, bounced.all),
        after: compareWith(after, bounced.mailed),
      })
    }
  }
  return lists
}

function compareWith(projected: BounceProjection, bounced: number): Covered {
  const rate = bounced / projected.addresses
  const { rateMin, rateMax } = projected
  return {
    covers: rateMin <= rate && rate <= rateMax,
    width: rateMax - rateMin,
    error: Math.abs(projected.rate - rate),
  }
}

console.log(`Machine: ${machine()}.`)
console.log(
  `\n### Calibration after a simulated year, measured on ${MEASURED} new addresses, ${SEEDS.length} seeds\n`,
)
const FIGURES = ['ECE', 'ECE by reason and operator', 'Brier score', 'wrong verdicts']
console.log(`| feedback | ${FIGURES.join(' | ')} |`)
console.log('|---|---|---|---|---|')
const projections: string[] = []
for (const pieces of PIECES) {
  const runs: number[][] = []
  const lists: Covering[] = []
  for (const seed of SEEDS) {
    const run = await simulate(pieces, seed)
    runs.push(run.figures)
    lists.push(...run.lists)
  }
  for (const [size, all] of Map.groupBy(lists, list => list.size)) {
    const cells = [all.map(list => list.before), all.map(list => list.after)].flatMap(toCells)
    projections.push(`| ${pieces} | ${size} | ${cells.join(' | ')} |`)
  }
  const cells = FIGURES.map((_, n) => describeFigure(runs.map(run => run[n] ?? 0)))
  console.log(`| ${pieces} | ${cells.join(' | ')} |`)
}

console.log(`
### Projected bounce rates against the truth, ${LISTS} lists of each size and seed

| feedback | addresses | covered | error | width | covered, actions followed | error | width |
|---|---|---|---|---|---|---|---|
${projections.join('\n')}`)

/** The share of intervals with the truth in them, the mean error, and the mean width, in points. */
function toCells(all: readonly Covered[]): string[] {
  const mean = (figure: (one: Covered) => number) =>
    all.reduce((sum, one) => sum + figure(one), 0) / all.length
  const covered = mean(({ covers }) => Number(covers))
  const points = (share: number) => (100 * share).toFixed(1)
  return [`${points(covered)}%`, points(mean(one => one.error)), points(mean(one => one.width))]
}

/** The mean and the standard deviation. */
function describeFigure(all: readonly number[]): string {
  const mean = all.reduce((sum, one) => sum + one, 0) / all.length
  const squares = all.reduce((sum, one) => sum + (one - mean) ** 2, 0)
  return `${mean.toFixed(4)} ± ${Math.sqrt(squares / Math.max(1, all.length - 1)).toFixed(4)}`
}
