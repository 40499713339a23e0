import { useState } from "react";
import { createRoot } from "react-dom/client";
import "lookback/view";
import { attentions, tokens } from "../output.js";

// Made once: a new object with every render would be new data.
const attention = { weights: attentions, tokens };

function Page() {
  const [head, setHead] = useState(0);
  const [cell, setCell] = useState(null);
  return (
    <main>
      <h1>React</h1>
      <button type="button" onClick={() => setHead((head + 1) % 3)}>
        Next head
      </button>
      <attention-map
        data={attention}
        layer={1}
        head={head}
        onattention-select={(event) => setCell(event.detail)}
      ></attention-map>
      <p id="chosen">{cell ? `${cell.queryToken.label} → ${cell.keyToken.label}: ${cell.weight}` : "nothing"}</p>
    </main>
  );
}

createRoot(document.getElementById("page")).render(<Page />);
