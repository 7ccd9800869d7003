import { CLASSES, type Class } from '../../engine/verdict/verdict.ts'
import { wilsonInterval } from '../../feedback/calibration.ts'

// Compares the verdicts of a tool with the known truth about addresses. Pure functions.

/** What is known about a mailbox: whether mail to it arrives. */
export type Truth = 'exists' | 'missing'

/** One address: its truth, and the class that a tool gave it; null if the tool gave it none. */
type Judged = { readonly truth: Truth; readonly class: Class | null }

/** A share with its Wilson interval of 95 %, each from 0 to 1; null without any address. */
export type Share = {
  readonly count: number
  readonly total: number
  readonly share: number | null
  readonly min: number | null
  readonly max: number | null
}

/** Counts by truth and class; `none` are addresses without a verdict. */
type Matrix = Readonly<Record<Truth, Readonly<Record<Class | 'none', number>>>>

export type Score = {
  readonly matrix: Matrix
  /** Mailboxes that exist and are called undeliverable: lost recipients. */
  readonly lost: Share
  /** Mailboxes that exist and are called deliverable. */
  readonly confirmed: Share
  /** Mailboxes that are missing and are called deliverable: bounces. */
  readonly missed: Share
  /** Mailboxes that are missing and are called undeliverable. */
  readonly caught: Share
  /** Addresses that are called deliverable and are missing: the bounce rate of mail to them. */
  readonly bounces: Share
  /** Addresses without an answer: unknown, or no verdict at all. */
  readonly unknown: Share
}

export function scoreVerdicts(judged: readonly Judged[]): Score {
  const matrix = countMatrix(judged)
  const { exists, missing } = matrix
  const [existing, absent] = [sum(exists), sum(missing)]
  const unanswered = exists.unknown + exists.none + missing.unknown + missing.none
  return {
    matrix,
    lost: toShare(exists.undeliverable, existing),
    confirmed: toShare(exists.deliverable, existing),
    missed: toShare(missing.deliverable, absent),
    caught: toShare(missing.undeliverable, absent),
    bounces: toShare(missing.deliverable, missing.deliverable + exists.deliverable),
    unknown: toShare(unanswered, judged.length),
  }
}

function countMatrix(judged: readonly Judged[]): Matrix {
  const matrix = { exists: emptyRow(), missing: emptyRow() }
  for (const { truth, class: klass } of judged) matrix[truth][klass ?? 'none']++
  return matrix
}

const emptyRow = () => ({ deliverable: 0, risky: 0, undeliverable: 0, unknown: 0, none: 0 })

const sum = (row: Matrix[Truth]) =>
  CLASSES.reduce((total, klass) => total + row[klass], 0) + row.none

function toShare(count: number, total: number): Share {
  if (total === 0) return { count, total, share: null, min: null, max: null }
  const { low, high } = wilsonInterval(count, total)
  return { count, total, share: count / total, min: low, max: high }
}
