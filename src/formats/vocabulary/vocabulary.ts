import type { ListDialect, Value } from '../../csv/csv.ts'
import { presentCheckedBy } from '../../engine/verdict/present-result.ts'
import { toFacts, type VocabularyRow } from './facts.ts'
import { KICKBOX } from './kickbox.ts'
import type { Vocabulary } from './names.ts'
import { NEVERBOUNCE } from './neverbounce.ts'
import { presentCheck, presentMissing, REACHER_COLUMNS, toReacherValues } from './reacher.ts'
import type { Column } from './table.ts'
import { ZEROBOUNCE } from './zerobounce.ts'

// Results in the columns and words of other services, for programs that read their exports.

/** The columns of a vocabulary. A value that ev does not have is null, an empty cell. */
type VocabularyColumns = {
  readonly names: readonly string[]
  values(row: VocabularyRow): Value[]
}

/**
 * The column that follows those of the service: a result that ev did not obtain from a mail server
 * must not look like one.
 */
const CHECKED_BY = 'checked_by'

/**
 * Returns the columns of a vocabulary. The first one has the address, unless the columns of an
 * uploaded list precede it, which have one address in each row.
 */
export function getVocabularyColumns(
  vocabulary: Vocabulary,
  dialect: Pick<ListDialect, 'width' | 'allAddresses'>,
): VocabularyColumns {
  const { names, values } = TABLES[vocabulary]
  const hasAddress = dialect.width === 0 || dialect.allAddresses === 'columns'
  const first = hasAddress ? 0 : 1
  return {
    names: [...names.slice(first), CHECKED_BY],
    values: row => [
      ...values(row).slice(first),
      row.result === null ? null : presentCheckedBy(row.result),
    ],
  }
}

const toColumns = (table: readonly Column[]): VocabularyColumns => ({
  names: table.map(([name]) => name),
  values(row) {
    const facts = toFacts(row)
    return table.map(([, getValue]) => getValue(facts))
  },
})

/** The address is in the first column of each. */
const TABLES: Readonly<Record<Vocabulary, VocabularyColumns>> = {
  zerobounce: toColumns(ZEROBOUNCE),
  neverbounce: toColumns(NEVERBOUNCE),
  kickbox: toColumns(KICKBOX),
  reacher: {
    names: REACHER_COLUMNS,
    values: ({ result, email, class: klass }) =>
      toReacherValues(result === null ? presentMissing(email, klass) : presentCheck(result, email)),
  },
}
