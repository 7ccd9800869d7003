import { html } from 'hono/html'
import type { Member } from '../../cluster/members.ts'
import { formatDuration, pluralize } from '../../platform/format.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { time } from '../page/text.ts'
import { replyOf } from './operator-text.ts'
import type { PeerBlock } from './source.ts'

/** The processes that share the database; nothing where it is one that cannot be shared. */
export function membersTable(members: readonly Member[], refusals: readonly PeerBlock[]): Html {
  if (members.length === 0) return NOTHING
  return html`
    <section>
      <h2>Members</h2>
      <div class="scroll"><table>
        <thead><tr>
          <th scope="col">Member</th><th scope="col">Does</th><th scope="col">Egresses</th>
          <th scope="col">Version</th><th scope="col">Since</th><th scope="col">Last heard of</th>
        </tr></thead>
        <tbody>${members.map(
          one => html`
            <tr>
              <th scope="row">${one.name}</th><td>${doneBy(one)}</td>
              <td>${one.egresses.join(', ')}</td><td>${one.version}</td>
              <td>${time(one.joinedAt)}</td><td>${formatDuration(Math.max(0, one.quietMs))} ago</td>
            </tr>`,
        )}</tbody>
      </table></div>
      <p><small>All processes that work on this database. What one of them had in hand is given to the others when it
      has not been heard of for ten seconds, and it stands here no longer then.</small></p>
      ${refusals.length === 0 ? NOTHING : blockedOnPeers(refusals)}
    </section>`
}

/** A server that has no egress for lists was told `--work off`. */
function doneBy({ role, egresses }: Member): string {
  if (role === 'worker') return 'works'
  return egresses.length === 0 ? 'answers' : 'answers and works'
}

/** What is asked by other processes stands on no other page. */
const blockedOnPeers = (refusals: readonly PeerBlock[]): Html => html`
  <h3>Refusals of other egresses</h3>
  <ul>${refusals.slice(0, REFUSALS_SHOWN).map(
    ({ title, egress, since, until, answer }) => html`
      <li>${title} refuses the egress “${egress}” since ${time(since)}, and is not asked by it until
        ${time(until)}: “${replyOf(answer)}”.</li>`,
  )}</ul>
  ${refusals.length <= REFUSALS_SHOWN ? NOTHING : html`<p><small>And ${pluralize(refusals.length - REFUSALS_SHOWN, 'more refusal')}.</small></p>`}
  <p><small>Other egresses ask meanwhile, where they are not refused as well. Run “ev doctor” on the machine of that
  egress.</small></p>`

const REFUSALS_SHOWN = 20
