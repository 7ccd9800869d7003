import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { isSignedLink, signLink } from '../../src/accounts/signed-link.ts'

const sign = (text: string) =>
  createHmac('sha256', 'secret of the service').update(text).digest('hex')
const signer = { secretBox: { sign } }
const key = { id: 'key_1', hint: 'kX8W' }
const link = signLink(signer, {
  key,
  path: '/v1/results/job_1',
  query: { format: 'csv', name: 'a b' },
  expiresAt: 1_780_315_200_999,
})

test('a signed link names its key and the second in which it expires, and ends with the signature', () => {
  const target = '/v1/results/job_1?format=csv&name=a+b&key_id=key_1&expires=1780315200'
  expect(link).toBe(`${target}&signature=${sign(`link 1 key_1 kX8W ${target}`)}`)
  expect(isSignedLink(signer, key, link)).toBe(true)
})

describe('a link is not signed', () => {
  test.each([
    ['for another path', link.replace('job_1', 'job_2')],
    ['for another parameter', link.replace('csv', 'tsv')],
    ['for a later time', link.replace('1780315200', '1780315201')],
    ['if a parameter follows the signature', `${link}&format=json`],
    ['if a parameter precedes the signature', link.replace('&signature', '&a=b&signature')],
    ['if its signature is truncated', link.slice(0, -1)],
    ['if its signature is empty', link.replace(/signature=.*/, 'signature=')],
    ['without a signature', link.replace(/&signature=.*/, '')],
    ['if it is empty', ''],
  ])('%s', (_, url) => {
    expect(isSignedLink(signer, key, url)).toBe(false)
  })

  test('for another key, nor after a rotation of the key', () => {
    expect(isSignedLink(signer, { ...key, id: 'key_2' }, link)).toBe(false)
    expect(isSignedLink(signer, { ...key, hint: 'aB3d' }, link)).toBe(false)
  })
})
