//! Grids of cells whose colour is a share.

/// A grid.
pub struct HeatMap {
    /// Subject.
    pub title: String,
    /// Meaning of rows, columns, colours and frames.
    pub note: String,
    /// Names from left to right.
    pub columns: Vec<String>,
    /// From top to bottom.
    pub rows: Vec<HeatRow>,
    /// Frames are around the best cells, not around outliers.
    pub frames_best: bool,
}

/// A row, with a cell for each column.
pub struct HeatRow {
    /// Its name.
    pub name: String,
    /// From left to right.
    pub cells: Vec<HeatCell>,
}

/// A cell.
#[derive(Default)]
pub struct HeatCell {
    /// Its colour, 0..=1; `None` of one without a result.
    pub share: Option<f64>,
    /// Its value, where there is room.
    pub text: String,
    /// All about it, while the pointer is on it.
    pub title: String,
    /// It stands out.
    pub is_framed: bool,
}
