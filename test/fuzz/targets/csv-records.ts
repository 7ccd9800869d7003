import { deepEqual, fail } from 'node:assert/strict'
import { type ListRecord, RecordReader } from '../../../src/csv/record.ts'
import type { Quoting } from '../../../src/csv/record-splitter.ts'
import { EvError } from '../../../src/platform/error.ts'
import { type FuzzTarget, readFixture, splitText } from '../target.ts'

const DELIMITERS = [',', ';', '\t', '|']
const QUOTINGS: readonly Quoting[] = ['doubled', 'backslash', 'line']

/** Records are the same in any chunking, and none is lost. The first byte chooses the dialect. */
export const target: FuzzTarget = {
  fuzz(bytes) {
    const [choice = 0] = bytes
    const options = {
      delimiter: DELIMITERS[choice & 3] ?? ',',
      quoting: QUOTINGS[(choice >> 2) % 3] ?? 'doubled',
      ...(choice & 0x40 ? { width: 3 } : {}),
      columnsMax: 100,
    }
    const text = bytes.subarray(1).toString()
    const whole = read(new RecordReader(options), [text])
    deepEqual(read(new RecordReader(options), splitText(text)), whole)
  },
  *seeds() {
    const texts = [
      'email,name\r\nann@mail.example,"Ann, ""A"""\r\n"a\nb",c,d\r\n',
      '"C:\\dir\\",x,"\\"y\\"\nz"\n"unclosed,a,b\nc,d,e\n',
      readFixture('list/demo.csv').subarray(0, 500).toString(),
    ]
    for (const [i, text] of texts.entries()) yield Buffer.from(`${String.fromCharCode(i)}${text}`)
    yield `\x04${texts[1]}`
    yield `\x49"a;b;""c"""\n"d;e;f"\n`
  },
  lengthMax: 2_048,
}

function read(reader: RecordReader, chunks: readonly string[]) {
  const records: ListRecord[] = []
  try {
    for (const [i, chunk] of [...chunks, ''].entries()) {
      for (const batch of reader.batches(chunk, i === chunks.length)) records.push(...batch)
    }
    return { records }
  } catch (error) {
    if (!(error instanceof EvError) || error.code !== 'bad_input') fail(`not bad_input: ${error}`)
    return { records: [], error: error.message }
  }
}
