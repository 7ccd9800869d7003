import { describe, test } from 'vitest'
import { throughBulk } from './doors.ts'
import { checkVerified, HALVES } from './scenarios.ts'

describe(`through ${throughBulk.name} a list`, () => {
  test.each(HALVES[0] ?? [])('$name', async scenario => {
    checkVerified(scenario, await throughBulk.verify(scenario), throughBulk)
  })
})
