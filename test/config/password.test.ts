import { expect, test } from 'vitest'
import { hasPassword, withoutPassword } from '../../src/config/values.ts'

test.each([
  ['postgres://ann:s3cret@db.example/ev', true, 'postgres://…@db.example/ev'],
  ['postgres://ann@db.example/ev', false, 'postgres://…@db.example/ev'],
  ['postgres://db.example/ev', false, 'postgres://db.example/ev'],
  [
    'postgres://db.example/ev?user=ann&password=s3cret&sslmode=require',
    true,
    'postgres://db.example/ev?user=ann&password=…&sslmode=require',
  ],
  ['postgres://db.example/ev?sslpassword=s3cret', true, 'postgres://db.example/ev?sslpassword=…'],
  ['socks5://ann:s3@cret@192.0.2.9:1080', true, 'socks5://…@192.0.2.9:1080'],
  ['sqlite:/var/lib/ev/ev.sqlite', false, 'sqlite:/var/lib/ev/ev.sqlite'],
])('%s', (url, has, shown) => {
  expect(hasPassword(url)).toBe(has)
  expect(withoutPassword(url)).toBe(shown)
})
