import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { type Budgets, findOverruns, renewBudgets } from '../../bench/suite/budgets.ts'
import { PAGE, replaceSection, sectionsOf } from '../../bench/suite/page.ts'
import { PARTS } from '../../bench/suite/parts.ts'

const BENCH = join(import.meta.dirname, '../../bench')

describe('a ratio is beyond its budget', () => {
  test.each([
    ['at least 0.5, within the tolerance', 0.41, { min: 0.5, tolerance: 0.2 }, []],
    ['above a minimum', 2, { min: 0.5, tolerance: 0 }, []],
    ['at most 2, within the tolerance', 2.39, { max: 2, tolerance: 0.2 }, []],
    [
      'below the tolerance',
      0.39,
      { min: 0.5, tolerance: 0.2 },
      ['speed: 0.39, at least 0.5 (−20%)'],
    ],
    ['above the tolerance', 2.41, { max: 2, tolerance: 0.2 }, ['speed: 2.41, at most 2 (+20%)']],
    ['no number', Number.NaN, { max: 2, tolerance: 0.2 }, ['speed: NaN, at most 2 (+20%)']],
  ])('%s', (_, ratio, budget, overruns) => {
    expect(findOverruns({ speed: ratio }, { speed: budget })).toEqual(overruns)
  })

  test('without a budget, or a budget without a ratio', () => {
    expect(findOverruns({ new: 1 }, { old: { max: 1, tolerance: 0 } })).toEqual([
      'new: 1.00, and there is no budget for it',
      'old: there is a budget, but it was not measured',
    ])
  })
})

test('renewed budgets have the measured limits, and keep their direction and tolerance', () => {
  const budgets = {
    speed: { min: 0.5, tolerance: 0.2 },
    memory: { max: 2, tolerance: 0.1 },
    other: { max: 1, tolerance: 0.1 },
  }
  expect(renewBudgets({ speed: 0.61234, memory: 1.5 }, budgets)).toEqual({
    speed: { min: 0.612, tolerance: 0.2 },
    memory: { max: 1.5, tolerance: 0.1 },
    other: { max: 1, tolerance: 0.1 },
  })
})

test('the budgets belong to parts of the suite, with a limit and a tolerance below one', () => {
  const budgets: Record<string, Budgets> = JSON.parse(
    readFileSync(join(BENCH, 'budgets.json'), 'utf8'),
  )
  expect(Object.keys(PARTS)).toEqual(expect.arrayContaining(Object.keys(budgets)))
  for (const budget of Object.values(budgets).flatMap(part => Object.values(part))) {
    expect('min' in budget ? budget.min : budget.max).toBeGreaterThan(0)
    expect(budget.tolerance).toBeGreaterThan(0)
    expect(budget.tolerance).toBeLessThan(1)
  }
})

test('the page about performance has a measured section for each part', () => {
  const page = readFileSync(PAGE, 'utf8')
  expect(sectionsOf(page).toSorted()).toEqual(Object.keys(PARTS).toSorted())
})

describe('a page', () => {
  const page =
    'Text.\n\n<!-- bench: one -->\n\nold\n\n<!-- end -->\n\n<!-- bench: two -->\n<!-- end -->\n'

  test('gets the lines of one section, and keeps the others', () => {
    expect(replaceSection(page, 'one', ['| new |', ''])).toBe(
      'Text.\n\n<!-- bench: one -->\n\n| new |\n\n\n<!-- end -->\n\n<!-- bench: two -->\n<!-- end -->\n',
    )
    expect(sectionsOf(page)).toEqual(['one', 'two'])
  })

  test('without the section is an error', () => {
    expect(() => replaceSection(page, 'three', [])).toThrow('<!-- bench: three -->')
  })
})
