import { describe, expect, test } from 'vitest'
import { planOutput } from '../../../src/cli/bulk/output-plan.ts'

const ALL = ['deliverable', 'risky', 'undeliverable', 'unknown']

describe('where rows go', () => {
  test('is one file for all, if nothing else is said', () => {
    expect(planOutput({ output: 'out.csv' })).toEqual([{ path: 'out.csv', classes: ALL }])
    expect(planOutput({ output: '-' })).toEqual([{ path: '-', classes: ALL }])
  })

  test.each([
    ['risky', ['risky']],
    ['unknown,deliverable', ['deliverable', 'unknown']],
    [' risky , risky', ['risky']],
  ])('--only %j names the classes', (only, classes) => {
    expect(planOutput({ output: '-', only })).toEqual([{ path: '-', classes }])
  })

  test.each(['', 'good', 'risky,', 'risky;unknown', 'Risky'])(
    '--only %j is refused with the four that there are',
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
    ['out.tar.gz', 'out.tar.risky.gz'],
    ['.out', '.out.risky'],
    ['/x/y.csv', '/x/y.risky.csv'],
  ])('--split puts the class into the name: %s', (output, path) => {
    expect(planOutput({ output, only: 'risky', split: true })).toEqual([
      { path, classes: ['risky'] },
    ])
  })

  test('--split has a file for each class, or for those of --only', () => {
    const classes = (only?: string) =>
      planOutput({ output: 'out.csv', split: true, ...(only === undefined ? {} : { only }) }).map(
        file => file.classes,
      )
    expect(classes()).toEqual(ALL.map(klass => [klass]))
    expect(classes('unknown,risky')).toEqual([['risky'], ['unknown']])
  })

  test('has a name', () => {
    expect(() => planOutput({ output: '' })).toThrow('-o is empty. Name a file, or - for stdout.')
  })

  test('--split cannot go to stdout', () => {
    expect(() => planOutput({ output: '-', split: true })).toThrow(
      expect.objectContaining({ code: 'usage', message: expect.stringContaining('-o') }),
    )
  })
})
