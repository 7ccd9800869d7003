import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import { FUZZ_FIXTURES, loadTarget, readCorpus, readFindings, TARGET_NAMES } from './target.ts'

// A target throws where a rule does not hold.
test.each(TARGET_NAMES)(
  '%s: its rules hold for seeds, the corpus, and each input that once failed',
  async name => {
    const { fuzz, seeds, lengthMax } = await loadTarget(name)
    const typical = [...[...seeds()].map(seed => Buffer.from(seed)), ...readCorpus(name)]
    expect(typical).not.toEqual([])
    expect(typical.filter(({ length }) => length > lengthMax)).toEqual([])
    for (const input of [...typical, ...readFindings(name)]) await fuzz(input)
  },
)

test('each folder of inputs belongs to a target', () => {
  expect(readdirSync(FUZZ_FIXTURES).toSorted()).toEqual(TARGET_NAMES)
})
