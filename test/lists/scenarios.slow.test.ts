import { describe, test } from 'vitest'
import { throughBulk, throughService } from './doors.ts'
import { checkVerified, HALVES } from './scenarios.ts'

describe.each([
  [throughService, HALVES[0] ?? []],
  [throughBulk, HALVES[1] ?? []],
])('through $name a list', (door, scenarios) => {
  test.each(scenarios)('$name', async scenario => {
    checkVerified(scenario, await door.verify(scenario), door)
  })
})
