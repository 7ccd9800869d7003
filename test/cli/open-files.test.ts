import { expect, test } from 'vitest'
import { fitToOpenFiles } from '../../src/cli/open-files.ts'
import { toConfig } from '../../src/config/config.ts'

const config = toConfig({ flags: {}, environment: {}, file: null })

test('a low limit of open files reduces the connections, and says so', () => {
  const said: string[] = []
  const fitted = fitToOpenFiles(config, text => said.push(text), 64)
  expect(fitted).toEqual({ ...config, concurrency: 12 })
  expect(said).toEqual([
    'the limit of open files is 64, so ev opens at most 12 connections, not 200. Raise it: ulimit -n 456, or LimitNOFILE= of systemd.',
  ])
})

test.each([null, 1_024])('a limit of %s changes nothing', filesMax => {
  const warn = () => {
    throw new Error('a warning')
  }
  expect(fitToOpenFiles(config, warn, filesMax)).toBe(config)
})
