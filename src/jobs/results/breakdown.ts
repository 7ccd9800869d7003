import { sql } from 'kysely'
import { runChunk, nextChunk } from '../../db/chunked-scan.ts'
import type { Database } from '../../db/database.ts'
import { textAt } from '../../db/sql-dialect.ts'
import type { Reason } from '../../engine/verdict/reason.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import { lastPosition, reasonIn } from './result-store.ts'

/** The results of a job, counted: all rows of the list that have one, duplicates too. */
export type Breakdown = {
  readonly done: number
  readonly classes: ClassCounts
  /** The most frequent first. */
  readonly reasons: readonly { readonly reason: Reason; readonly count: number }[]
  /** By who runs the mail of the domain, the most frequent first. */
  readonly operators: readonly OperatorCount[]
  /** Rows of the operators that are not among these. */
  readonly operatorsLeft: number
}

export type ClassCounts = Readonly<Record<Class, number>>

export type OperatorCount = {
  /** Null: nobody is known, as no mail server was looked for. */
  readonly operator: string | null
  readonly count: number
  readonly classes: ClassCounts
}

/** Operators that are told of; a chart of more is read by nobody. */
const OPERATORS_SHOWN = 20
/** Operators that are counted at the same time: a list may have as many as rows. */
const OPERATORS_MAX = 10_000

/** Counts the results that a job has, stretch by stretch. */
export async function countBreakdown(
  database: Database,
  jobId: string,
  operatorsMax = OPERATORS_MAX,
): Promise<Breakdown> {
  const last = await lastPosition(database, jobId)
  const reasons = new Map<Reason, number>()
  const operators = new Map<string | null, Record<Class, number>>()
  const classes = noneOf()
  const chunk = nextChunk(database)
  for (let after = 0; after < last; after += chunk) {
    const part = { jobId, after, to: after + chunk }
    for (const group of await runChunk(database, () => groupsOf(database, part))) {
      const ofOperator = operators.get(group.operator) ?? noneOf()
      operators.set(group.operator, ofOperator)
      ofOperator[group.class] += group.count
      classes[group.class] += group.count
      reasons.set(group.reason, (reasons.get(group.reason) ?? 0) + group.count)
    }
    if (operators.size > operatorsMax) dropRarerHalf(operators)
  }
  return { classes, ...presentable(classes, reasons, operators) }
}

type Group = {
  readonly class: Class
  readonly reason: Reason
  readonly operator: string | null
  readonly count: number
}

/** Duplicates are counted with the row that they repeat, which knows how many they are. */
async function groupsOf(
  { reader }: Database,
  { jobId, after, to }: { jobId: string; after: number; to: number },
): Promise<Group[]> {
  const { rows } = await sql<Group>`
    select class, ${reasonIn(reader, sql`result`, sql`class`)} as reason,
      ${textAt(reader, sql`result`, ['evidence', 'operator', 'name'])} as operator,
      sum(copies) as count
    from item
    where job_id = ${jobId} and position > ${after} and position <= ${to} and state = 'done'
    group by 1, 2, 3`.execute(reader)
  return rows
}

/** One that is frequent comes again; those that are not are counted with the others at the end. */
function dropRarerHalf(operators: Map<string | null, ClassCounts>): void {
  const counts = Float64Array.from(operators.values(), sumOf).sort()
  const median = counts[counts.length >> 1] ?? 0
  for (const [operator, classes] of operators) {
    if (sumOf(classes) <= median) operators.delete(operator)
  }
}

function presentable(
  classes: ClassCounts,
  reasons: ReadonlyMap<Reason, number>,
  operators: ReadonlyMap<string | null, ClassCounts>,
): Omit<Breakdown, 'classes'> {
  const done = sumOf(classes)
  const shown = [...operators]
    .map(([operator, counts]) => ({ operator, count: sumOf(counts), classes: counts }))
    .sort((a, b) => b.count - a.count || inOrder(a.operator ?? '', b.operator ?? ''))
    .slice(0, OPERATORS_SHOWN)
  return {
    done,
    reasons: [...reasons]
      .map(([reason, count]) => ({ reason, count }))
      .sort((a, b) => b.count - a.count || inOrder(a.reason, b.reason)),
    operators: shown,
    operatorsLeft: shown.reduce((left, { count }) => left - count, done),
  }
}

const noneOf = () => ({ deliverable: 0, risky: 0, undeliverable: 0, unknown: 0 })

const sumOf = ({ deliverable, risky, undeliverable, unknown }: ClassCounts) =>
  deliverable + risky + undeliverable + unknown

/** What is as frequent stands in the same order each time. */
const inOrder = (a: string, b: string) => (a < b ? -1 : 1)
