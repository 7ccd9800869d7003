/** Lists in, lists out: everything that the rest of the house needs to know of CSV. */
export {
  type Delimiter,
  type DetectOptions,
  detectColumns,
  detectDialect,
  HEAD_BYTES_MAX,
  type ListDialect,
  type OptionWords,
} from './dialect.ts'
export { type ListRow, readList } from './reader.ts'
export { createRowObject } from './row-object.ts'
export { createRowWriter, type RowWriter } from './writer.ts'
