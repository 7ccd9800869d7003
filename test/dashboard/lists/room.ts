import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createTestDashboard } from '../../support/dashboard.ts'
import { FORM, form } from '../../support/list-form.ts'

/** Foreign text that would do something, were it not shown as text. */
export const EVIL = '<img src=x onerror=alert(1)>'
export const EVIL_SHOWN = '&lt;img src=x onerror=alert(1)&gt;'

type Sending = {
  readonly fileName?: string
  readonly name?: string
  readonly sandbox?: boolean
  readonly headers?: Readonly<Record<string, string>>
}

/** The dashboard, and how lists are sent to it. */
export async function listsHouse(options: Parameters<typeof createTestDashboard>[0] = {}) {
  const house = await createTestDashboard(options)

  /** Sends a list as the script of the page does. */
  async function send(list: string | Uint8Array, o: Sending = {}): Promise<Response> {
    const headers = {
      'Content-Type': 'application/octet-stream',
      'X-CSRF-Token': await house.csrf(),
      'X-File-Name': encodeURIComponent(o.fileName ?? 'list.csv'),
      'X-List-Name': encodeURIComponent(o.name ?? ''),
      'X-List-Sandbox': String(o.sandbox ?? false),
      ...o.headers,
    }
    const body = list as string | Uint8Array<ArrayBuffer>
    return house.fetch('/lists/drafts', { method: 'POST', headers, body })
  }

  return {
    ...house,
    send,
    /** Sends a list, and gives the path of the page where it is looked at. */
    async draft(list: string, o: Sending = {}): Promise<string> {
      const { path } = (await (await send(list, o)).json()) as { path: string }
      return path
    },
    /** Sends a list as the page does without scripts. */
    sendForm(parts: Parameters<typeof form>[0]): Promise<Response> {
      const body = form(parts) as Uint8Array<ArrayBuffer>
      return house.fetch('/lists/drafts', {
        method: 'POST',
        headers: { 'Content-Type': FORM },
        body,
      })
    },
    /** Signs in to another account, whose browser this is from now on. */
    async asAnother(): Promise<void> {
      await house.addAccount('acc_2')
      const key = await house.addKey({ accountId: 'acc_2' })
      house.cookies.clear()
      await house.signIn(key)
    },
    /** Signs in with a key that may do only this. */
    async as(...scopes: NonNullable<Parameters<typeof house.addKey>[0]>['scopes'] & object) {
      const key = await house.addKey({ scopes: ['dashboard', ...scopes] })
      house.cookies.clear()
      await house.signIn(key)
    },
    /** Files of drafts. */
    left(): string[] {
      const folder = join(house.service.settings.dataDir, 'drafts')
      return existsSync(folder) ? readdirSync(folder) : []
    },
  }
}
