import { sql } from 'kysely'
import type { Database } from '../../db/database.ts'
import { nextChunk, runChunk } from '../../db/paging.ts'
import { textAt } from '../../db/sql-dialect.ts'
import { type ActionCase, toCase } from '../../engine/verdict/action.ts'
import { type Reason, type Risk, VERDICT_BY_REASON } from '../../engine/verdict/reason.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import { ResultCounter, type ResultGroup } from '../../feedback/projection.ts'
import { lastPosition, reasonIn } from './result-store.ts'

/**
 * Counts of the results of a job, over all rows of the list that have one, including duplicates.
 */
export type Breakdown = {
  readonly done: number
  readonly classes: ClassCounts
  /** Sorted by count, the most frequent first. A reason may have results of two classes. */
  readonly reasons: readonly ReasonCount[]
  /** Counts by MX operator, the most frequent first. */
  readonly operators: readonly OperatorCount[]
  /** Number of rows of operators that are not listed. */
  readonly operatorsLeft: number
  /** For the actions and the projected bounces, which depend on the policy. */
  readonly groups: readonly ResultGroup[]
}

type ClassCounts = Readonly<Record<Class, number>>

type ReasonCount = {
  readonly reason: Reason
  readonly class: Class
  readonly count: number
}

type OperatorCount = {
  /** Null if no mail server was looked up. */
  readonly operator: string | null
  readonly count: number
  readonly classes: ClassCounts
}

/** Maximum number of operators reported; longer charts are not readable. */
const OPERATORS_SHOWN = 20
/** Maximum number of operators counted at a time: a list may have as many operators as rows. */
const OPERATORS_MAX = 10_000

/** Counts the results of a job, chunk by chunk. */
export async function countBreakdown(
  database: Database,
  jobId: string,
  operatorsMax = OPERATORS_MAX,
): Promise<Breakdown> {
  const last = await lastPosition(database, jobId)
  const reasons = new Map<string, ReasonCount>()
  const operators = new Map<string | null, Record<Class, number>>()
  const classes = zeroCounts()
  const counter = new ResultCounter()
  const chunk = nextChunk(database)
  for (let after = 0; after < last; after += chunk) {
    const part = { jobId, after, to: after + chunk }
    for (const group of await runChunk(database, () => countGroups(database, part))) {
      const ofOperator = operators.get(group.operator) ?? zeroCounts()
      operators.set(group.operator, ofOperator)
      ofOperator[group.class] += group.count
      classes[group.class] += group.count
      addReason(reasons, group)
      counter.add(caseOf(group), group.operator, Number(group.count))
    }
    if (operators.size > operatorsMax) dropRarerHalf(operators)
  }
  return { classes, ...summarize(classes, reasons, operators), groups: counter.groups() }
}

type Group = {
  readonly class: Class
  readonly reason: Reason
  readonly operator: string | null
  /** Null for an erased address. */
  readonly risk: Risk | null
  /** The kind of the newest report about the address; null without one. */
  readonly feedback: string | null
  readonly count: number
}

const caseOf = ({ reason, risk, feedback }: Group): ActionCase =>
  feedback === 'complained'
    ? 'complained'
    : toCase({ reason, risk: risk ?? VERDICT_BY_REASON[reason].risk })

function addReason(
  reasons: Map<string, ReasonCount>,
  { reason, class: klass, count }: Group,
): void {
  const key = `${reason}/${klass}`
  const before = reasons.get(key)?.count ?? 0
  reasons.set(key, { reason, class: klass, count: before + count })
}

/** Duplicates are counted with their first row, which stores the number of copies. */
async function countGroups(
  { reader }: Database,
  { jobId, after, to }: { jobId: string; after: number; to: number },
): Promise<Group[]> {
  const { rows } = await sql<Group>`
    select class, ${reasonIn(reader, sql`result`, sql`class`)} as reason,
      ${textAt(reader, sql`result`, ['evidence', 'operator', 'name'])} as operator,
      ${textAt(reader, sql`result`, ['verdict', 'risk'])} as risk,
      ${textAt(reader, sql`result`, ['evidence', 'feedback', 'kind'])} as feedback,
      sum(copies) as count
    from item
    where job_id = ${jobId} and position > ${after} and position <= ${to} and state = 'done'
    group by 1, 2, 3, 4, 5`.execute(reader)
  return rows
}

/**
 * Drops the counts of rare operators to free memory: a frequent operator recurs in later chunks,
 * and the rows of the others count as not listed.
 */
function dropRarerHalf(operators: Map<string | null, ClassCounts>): void {
  const counts = Float64Array.from(operators.values(), sumCounts).sort()
  const median = counts[counts.length >> 1] ?? 0
  for (const [operator, classes] of operators) {
    if (sumCounts(classes) <= median) operators.delete(operator)
  }
}

function summarize(
  classes: ClassCounts,
  reasons: ReadonlyMap<string, ReasonCount>,
  operators: ReadonlyMap<string | null, ClassCounts>,
): Omit<Breakdown, 'classes' | 'groups'> {
  const done = sumCounts(classes)
  const shown = [...operators]
    .map(([operator, counts]) => ({ operator, count: sumCounts(counts), classes: counts }))
    .sort((a, b) => b.count - a.count || compareText(a.operator ?? '', b.operator ?? ''))
    .slice(0, OPERATORS_SHOWN)
  return {
    done,
    reasons: [...reasons]
      .sort(([keyA, a], [keyB, b]) => b.count - a.count || compareText(keyA, keyB))
      .map(([, counted]) => counted),
    operators: shown,
    operatorsLeft: shown.reduce((left, { count }) => left - count, done),
  }
}

const zeroCounts = () => ({ deliverable: 0, risky: 0, undeliverable: 0, unknown: 0 })

const sumCounts = ({ deliverable, risky, undeliverable, unknown }: ClassCounts) =>
  deliverable + risky + undeliverable + unknown

/** Keeps the order of equally frequent entries stable. */
const compareText = (a: string, b: string) => (a < b ? -1 : 1)
