import type { ListDialect } from '../../csv/csv.ts'
import { joinWords } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'

/** Describes which cells of a list are verified: a part of a sentence. */
export function describeVerified(dialect: ListDialect): string {
  const { column, columnName, addressColumns = [column], allAddresses } = dialect
  if (allAddresses === 'cells') return 'one for each address'
  if (allAddresses === 'columns')
    return `one for each address in ${nameColumns(dialect, addressColumns)}`
  return `addresses in column ${columnName ?? `number ${column + 1}`}`
}

/** Describes the addresses of a list that are not verified; null if there are none. */
export function describeUnverified(dialect: ListDialect): string | null {
  const { column, addressColumns = [], hasSeveral = false, allAddresses } = dialect
  const others = addressColumns.filter(one => one !== column)
  if (allAddresses !== undefined || (others.length === 0 && !hasSeveral)) return null
  const verb = others.length === 1 ? 'holds' : 'hold'
  return [
    ...(hasSeveral ? ['Cells with several addresses get the reason invalid_email.'] : []),
    ...(others.length > 0
      ? [`Not verified: ${nameColumns(dialect, others)}, which also ${verb} addresses.`]
      : []),
    'To verify every address, each as a separate row, add --all-addresses.',
  ].join(' ')
}

/** Formats columns: `columns 2 (email) and 3`. */
function nameColumns({ header }: ListDialect, columns: readonly number[]): string {
  const names = columns.slice(0, COLUMNS_NAMED_MAX).map(column => {
    const name = sanitizeText(header?.[column] ?? '', 40)
    return name === '' ? `${column + 1}` : `${column + 1} (${name})`
  })
  if (columns.length > names.length) names.push(`${columns.length - names.length} more`)
  return `${columns.length === 1 ? 'column' : 'columns'} ${joinWords(names, 'and')}`
}

/** Enough to see what the others are. */
const COLUMNS_NAMED_MAX = 10
