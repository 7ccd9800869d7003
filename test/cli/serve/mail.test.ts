import { describe, expect, test } from 'vitest'
import { mailTransport } from '../../../src/cli/serve/run-service.ts'
import { toConfig } from '../../../src/config/config.ts'

const transportFor = (flags: Record<string, string>) =>
  mailTransport(toConfig({ flags, environment: { HOME: '/home/ann' }, file: null }))

const SERVER = { notifySmtp: 'smtp://mail.example' }
const SENDER = { notifyFrom: 'ev@example.com' }

describe('alerts of ev serve', () => {
  test('go to the log if nothing is configured', () => {
    expect(transportFor({})).toBeNull()
  })

  test('go through the configured mail server, with or without a default recipient', () => {
    const transport = { url: 'smtp://mail.example', from: 'ev@example.com' }
    expect(transportFor({ ...SERVER, ...SENDER })).toEqual(transport)
    expect(transportFor({ ...SERVER, ...SENDER, notifyTo: 'ops@example.com' })).toEqual(transport)
  })

  test.each([
    ['a server without a sender', SERVER, /--notify-smtp is set, --notify-from is not/],
    ['a sender without a server', SENDER, /--notify-from is set, --notify-smtp is not/],
    [
      'a recipient without a server',
      { notifyTo: 'ops@example.com' },
      /--notify-to is set, --notify-smtp is not/,
    ],
  ])('reject %s', (_, flags, fault) => {
    expect(() => transportFor(flags)).toThrow(fault)
    expect(() => transportFor(flags)).toThrow(expect.objectContaining({ code: 'bad_config' }))
  })
})
