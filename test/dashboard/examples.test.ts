import { expect, test } from 'vitest'
import { createTestDashboard } from '../support/dashboard.ts'

test.each(['/usage', '/lists', '/feedback', '/webhooks'])(
  '%s without content has a command to copy, which reads the key from EV_KEY',
  async path => {
    const { get } = await createTestDashboard()
    const { text } = await get(path)
    const [, command = ''] = /<pre data-copy>(curl .*?)<\/pre>/s.exec(text) ?? []
    expect(command).toContain('Authorization: Bearer $EV_KEY')
    expect(text).not.toContain('EV_API_KEY')
  },
)
