import { describe, expect, test } from 'vitest'
import {
  checkRowCount,
  chooseFormat,
  defaultOutput,
  planOutput,
} from '../../../src/cli/bulk/output-plan.ts'

const ALL = ['deliverable', 'risky', 'undeliverable', 'unknown']

describe('the output plan', () => {
  test('is one file for all classes by default', () => {
    expect(planOutput({ output: 'out.csv' })).toEqual([{ path: 'out.csv', classes: ALL }])
    expect(planOutput({ output: '-' })).toEqual([{ path: '-', classes: ALL }])
  })

  test.each([
    ['list.csv', undefined, 'list.verified.csv'],
    ['a.b/list.TSV', undefined, 'a.b/list.verified.TSV'],
    ['list.txt', undefined, 'list.verified.csv'],
    ['list', 'csv', 'list.verified.csv'],
    ['list.csv', 'ndjson', 'list.verified.ndjson'],
    ['list.xlsx', undefined, 'list.verified.xlsx'],
    ['list.xlsx', 'csv', 'list.verified.csv'],
    ['list.csv', 'xlsx', 'list.verified.xlsx'],
    ['list.csv.gz', undefined, 'list.verified.csv.gz'],
    ['list.gz', 'ndjson', 'list.verified.ndjson.gz'],
    ['list.csv.gz', 'xlsx', 'list.verified.xlsx'],
    ['list.zip', undefined, 'list.verified.csv'],
    ['-', undefined, '-'],
    ['/dev/fd/63', 'json', '-'],
  ] as const)('without -o, %s in the format %s goes to %s', (list, format, output) => {
    expect(defaultOutput(list, format)).toBe(output)
  })

  test.each([
    ['out.XLS', '.xls'],
    ['a/b.ods', '.ods'],
    ['out.pdf', '.pdf'],
    ['out.zip.gz', '.zip'],
  ])('rejects the extension of %s', (output, extension) => {
    expect(() => chooseFormat(output)).toThrow(
      `${output} does not tell the format: ${extension} is not known. With -o, name a file that ends in .csv, .tsv, .txt, .json, .ndjson, .jsonl or .xlsx, or in one of them and .gz, or set a text format with --format.`,
    )
  })

  test.each([
    ['out.csv', 'csv'],
    ['out.tsv.gz', 'csv'],
    ['out.json', 'json'],
    ['out.JSONL', 'ndjson'],
    ['out.ndjson.gz', 'ndjson'],
    ['out.xlsx', 'xlsx'],
    ['out', 'csv'],
    ['/dev/stdout', 'csv'],
  ])('the name %s selects the format %s', (output, format) => {
    expect(chooseFormat(output)).toBe(format)
  })

  test('a file with an unknown extension is written in a text format that is set', () => {
    expect(chooseFormat('out.dat', 'ndjson')).toBe('ndjson')
    expect(() => chooseFormat('out.dat', 'xlsx')).toThrow('does not tell')
  })

  test('a name without an extension, and .txt, are for every text format', () => {
    expect(chooseFormat('out', 'xlsx')).toBe('xlsx')
    expect(chooseFormat('out.txt.gz', 'ndjson')).toBe('ndjson')
  })

  test.each([
    ['out.xlsx', 'csv', 'is the name of a file in the format xlsx, but --format is csv.'],
    ['out.csv', 'xlsx', 'is the name of a file in the format csv, but --format is xlsx.'],
    ['out.json.gz', 'csv', 'is the name of a file in the format json, but --format is csv.'],
    ['out.txt', 'xlsx', 'is the name of a file in the format csv, but --format is xlsx.'],
    ['out.xlsx.gz', 'xlsx', 'out.xlsx.gz ends in .gz, but a workbook is compressed. Omit .gz.'],
  ] as const)('rejects %s with --format %s', (output, format, refusal) => {
    expect(() => chooseFormat(output, format)).toThrow(refusal)
  })

  test('a list with more rows than a worksheet is rejected for XLSX only', () => {
    expect(() => checkRowCount(1_048_576, 'xlsx')).toThrow(/at most 1,048,575. Name a CSV file/)
    checkRowCount(1_048_575, 'xlsx')
    checkRowCount(1_048_576, 'csv')
  })

  test.each([
    ['risky', ['risky']],
    ['unknown,deliverable', ['deliverable', 'unknown']],
    [' risky , risky', ['risky']],
  ])('parses --only %j', (only, classes) => {
    expect(planOutput({ output: '-', only })).toEqual([{ path: '-', classes }])
  })

  test.each(['', 'good', 'risky,', 'risky;unknown', 'Risky'])(
    'rejects --only %j and lists the classes',
    only => {
      const refusal =
        /--only has ".*"; it takes a comma-separated list of deliverable, risky, undeliverable, unknown\./
      expect(() => planOutput({ output: '-', only })).toThrow(refusal)
      expect(() => planOutput({ output: '-', only })).toThrow(
        expect.objectContaining({ code: 'usage' }),
      )
    },
  )

  test.each([
    ['out.csv', 'out.risky.csv'],
    ['out', 'out.risky'],
    ['a.b/out', 'a.b/out.risky'],
    ['out.csv.gz', 'out.risky.csv.gz'],
    ['out.xlsx', 'out.risky.xlsx'],
    ['.out', '.out.risky'],
    ['/x/y.csv', '/x/y.risky.csv'],
  ])('--split inserts the class into the name: %s', (output, path) => {
    expect(planOutput({ output, only: 'risky', split: true })).toEqual([
      { path, classes: ['risky'] },
    ])
  })

  test('--split writes a file per class, or per class of --only', () => {
    const classes = (only?: string) =>
      planOutput({ output: 'out.csv', split: true, ...(only === undefined ? {} : { only }) }).map(
        file => file.classes,
      )
    expect(classes()).toEqual(ALL.map(klass => [klass]))
    expect(classes('unknown,risky')).toEqual([['risky'], ['unknown']])
  })

  test('rejects an empty name', () => {
    expect(() => planOutput({ output: '' })).toThrow('-o is empty. Name a file, or - for stdout.')
  })

  test('--split cannot go to stdout', () => {
    expect(() => planOutput({ output: '-', split: true })).toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringContaining('-o') }),
    )
  })
})
