import type { MxOperator } from './operator.ts'
import { OPERATOR_ROWS } from './operators.ts'
import { PARKED_ROWS } from './parked-operators.ts'

/** Operators by their names, and by the ends of their exchangers' names. */
export type MxOperatorTable = {
  readonly byName: ReadonlyMap<string, MxOperator>
  readonly bySuffix: ReadonlyMap<string, MxOperator>
}

/** The operator with the longest suffix that `host`, in lower case, ends in. */
export function operatorBySuffix(
  { bySuffix }: MxOperatorTable,
  host: string,
): MxOperator | undefined {
  for (let suffix = host; suffix !== ''; suffix = afterDot(suffix)) {
    const known = bySuffix.get(suffix)
    if (known) return known
  }
  return undefined
}

const afterDot = (name: string) => (name.includes('.') ? name.slice(name.indexOf('.') + 1) : '')

/** The operators that ev knows by itself. */
export const TABLE: MxOperatorTable = readTable()

function readTable(): MxOperatorTable {
  const byName = new Map<string, MxOperator>()
  const bySuffix = new Map<string, MxOperator>()
  for (const [name, title, truth, suffixes] of [...OPERATOR_ROWS, ...PARKED_ROWS]) {
    const operator = Object.freeze({ name, title, truth })
    byName.set(name, operator)
    for (const suffix of suffixes.split(' ')) bySuffix.set(suffix, operator)
  }
  return { byName, bySuffix }
}
