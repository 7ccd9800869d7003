import { describe, test } from 'vitest'
import { throughBulk, throughEngine, throughService } from './doors.ts'
import { checkVerified, SCENARIOS } from './scenarios.ts'

describe.each([throughEngine, throughBulk, throughService])('through $name a list', door => {
  test.each(SCENARIOS)('$name', async scenario => {
    checkVerified(scenario, await door.verify(scenario), door)
  })
})
