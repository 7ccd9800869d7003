import { readdirSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  FUZZ_FIXTURES,
  loadTarget,
  readCorpus,
  readFindings,
  readSeeds,
  TARGET_NAMES,
} from './target.ts'

// A target throws where a rule does not hold.
test.each(TARGET_NAMES)(
  '%s: its rules hold for seeds, the corpus, and each input that once failed',
  async name => {
    const target = await loadTarget(name)
    const { fuzz, lengthMax } = target
    const typical = [...(await readSeeds(target)), ...readCorpus(name)]
    expect(typical).not.toEqual([])
    expect(typical.filter(({ length }) => length > lengthMax)).toEqual([])
    for (const input of [...typical, ...readFindings(name)]) await fuzz(input)
  },
)

test('each folder of inputs belongs to a target', () => {
  expect(readdirSync(FUZZ_FIXTURES).toSorted()).toEqual(TARGET_NAMES)
})
