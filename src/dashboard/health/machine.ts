import { html } from 'hono/html'
import type { MachineProblem, MachineStatus } from '../../engine/machine-status.ts'
import { toSentence } from '../../platform/text.ts'
import type { Html } from '../page/html.ts'
import { notice } from '../page/notice.ts'
import type { Item } from '../page/parts.ts'
import { capitalize, time } from '../page/text.ts'

/** Renders that this machine cannot verify addresses, why, and the effect; nothing if it can. */
export const machineNotice = ({ problems }: Pick<MachineStatus, 'problems'>, remedy: Html): Html =>
  html`${problems.map(problem => notice('bad', html`<b>${TITLE}.</b> ${describe(problem)} ${remedy}`))}`

/** Renders the notice above a page that verifies. It disappears when the problem ends. */
export const machineBanner = (machine: MachineStatus, isAdmin: boolean): Html => html`
  <div id="machine" hx-get="/overview/machine" hx-trigger="every 10s" hx-swap="outerHTML">
    ${machineNotice(machine, findRemedy(isAdmin))}</div>`

/** Returns where a user of a page finds the fix. */
const findRemedy = (isAdmin: boolean): Html =>
  isAdmin
    ? html`See <a href="/doctor">Health</a> for the cause and the fix.`
    : html`Contact the administrator of this service.`

/** Returns the problems of this machine as items of the Overview. */
export const machineItems = ({ problems }: MachineStatus, isAdmin: boolean): Item[] =>
  problems.map(problem => ({
    tone: 'bad',
    title: TITLE,
    note: describe(problem),
    ...(isAdmin && { link: HEALTH_LINK }),
  }))

export const HEALTH_LINK = { href: '/doctor', label: 'Fix' } as const

const TITLE = 'This machine cannot verify addresses now'

const describe = ({ cause, detail, since }: MachineProblem): Html =>
  html`${since === null ? toSentence(detail) : html`${capitalize(detail)}, since ${time(since)}.`} ${EFFECTS[cause]}`

const EFFECTS: Readonly<Record<MachineProblem['cause'], string>> = {
  dns: 'Lists wait, and single addresses end as unknown.',
  smtp: 'Addresses that a mail server has to confirm end as unknown.',
}
