import { describe, test } from 'vitest'
import { throughBulk } from './doors.ts'
import { checkVerified, SCENARIOS } from './scenarios.ts'

describe(`through ${throughBulk.name} a list`, () => {
  test.each(SCENARIOS)('$name', async scenario => {
    checkVerified(scenario, await throughBulk.verify(scenario), throughBulk)
  })
})
