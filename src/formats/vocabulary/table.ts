import type { Value } from '../../csv/csv.ts'
import type { Facts } from './facts.ts'

/** A column of another service: its name, and its value for a result. */
export type Column = readonly [name: string, getValue: (facts: Facts) => Value]

/** A column that ev has no value for; it is empty. */
export const empty = (name: string): Column => [name, () => null]
